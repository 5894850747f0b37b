// Taskq adds tasks to a time-based queue, runs them, and shows what becomes of them.
//
//	taskq enqueue -type mail -delay 5m '{"to": "ada"}'
//	taskq work -exec ./send-mail
//	taskq stats
//
// The exit status is 0 if all went well, 1 if not, 2 if the command line is wrong,
// 3 if there is no such task or it is in no state for that, and 128 + n when a
// signal n stopped it before it was done.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/service"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A command is one verb.
type command struct {
	args string // behind the flags
	what string
	// set adds the flags of the command and returns what runs it.
	set func(f *flag.FlagSet) func(ctx context.Context, e *env) error
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"enqueue": {"[payload]", "add a task; its payload is the argument, or stdin with -", enqueueCommand},
		"work":    {"", "run a command for each task: payload on stdin, the exit status decides", workCommand},
		"list":    {"", "list the tasks of a queue", listCommand},
		"show":    {"id ...", "show all that is known of tasks", showCommand},
		"stats":   {"[queue ...]", "show the figures of queues", statsCommand},
		"cancel":  {"id ...", "end tasks that wait, and stop those that run", actCommand(store.ActCancel)},
		"retry":   {"id ...", "have dead and cancelled tasks run again", actCommand(store.ActRetry)},
		"promote": {"id ...", "have tasks run now that wait for their time, or for others", actCommand(store.ActPromote)},
		"delete":  {"id ...", "forget tasks that do not run", actCommand(store.ActDelete)},
		"purge":   {"state", "forget all tasks in a state", purgeCommand},
		"pause":   {"[queue ...]", "have no more tasks of queues started", pauseCommand(true)},
		"resume":  {"[queue ...]", "the inverse of pause", pauseCommand(false)},
		"limit":   {"[key]", "bound the tasks of a key, of keys that begin alike, or of a type", limitCommand},
		"serve":   {"[queue ...]", "show queues on a page in the browser, and to Prometheus", serveCommand},
		"audit":   {"", "check what is stored; nobody else should use it meanwhile", auditCommand},
		"import":  {"file", "add the tasks of a file of the store of before, which bbolt has written", importCommand},
		"bench":   {"", "measure a store: how fast it adds and runs tasks, and how late they are", benchCommand},
		"demo":    {"", "a thousand tasks, failures and a killed worker, and the report of an auditor", demoCommand},
	}
}

// more is what there is to know of a command beside its flags.
var more = map[string]string{
	"pause":  "What runs goes on. Without an argument it is the queue of -queue.",
	"resume": "Without an argument it is the queue of -queue.",
	"purge":  "It does not ask again. The state is one of scheduled, ready, retrying, done, dead,\ncancelled and waiting.",
	"limit":  "A key that ends with a star stands for each key that begins so. Without a concurrency and a rate\nthe limit is taken away; without a key and -type the limits of the queue are listed.",
	"list":   "Texts are cut, and what a terminal might obey is written as \\xNN. -json has tasks as they\nare, one a line.",
	"cancel": "One that runs ends when its handler returns: as cancelled, unless that returned nil.",
	"serve":  "The page only reads unless -act is given. Beside it are /metrics for Prometheus, /api with the\nsame as JSON, and /healthz. There is no password: the page is for this machine only, unless\n-listen says otherwise; through ssh it is reached with ssh -L 8080:127.0.0.1:8080 HOST.",
	"bench":  "It works in the queue taskq-bench, or in that of -queue, which must have no tasks, and deletes\nits tasks at the end. Progress goes to stderr. Others who use the store will notice.",
	"import": "What waits, runs or is to be tried again is added under its id, so it can be done again; the\nsettings of the queues are taken over. What has ended is left, and the file is only read.",
	"delete": "An id that is deleted can be added again.",
	"work":   "A command that ends with 0 has done its task, 65 makes it a dead letter, 75 gives it back\nwithout an attempt spent; else it has failed. What it writes to stdout is kept as the result,\nand the last line that a failed one has written to stderr, up to 200 bytes, stands in its last error.\nThe first signal lets what runs go on for as long as -grace says, the second stops it.",
}

// env is what a command works with.
type env struct {
	args   []string
	store  taskqueue.Store
	queue  *taskqueue.Queue
	url    string // of the store; it may have a password: show storeName(url)
	json   bool
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	queueGiven bool // -queue was
	observe    func(taskqueue.Event)
}

// hidden are commands that demo and bench start for themselves.
var hidden = map[string]func(ctx context.Context, args []string) error{"demo-worker": demoWorker}

func main() {
	if len(os.Args) > 1 && hidden[os.Args[1]] != nil {
		service.Main(func(ctx context.Context) error { return hidden[os.Args[1]](ctx, os.Args[2:]) })
	}
	service.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:]) })
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		usage(os.Stderr)
		return usagef("a command is missing")
	}
	name := args[0]
	c, known := commands[name]
	switch {
	case name == "-h", name == "--help", name == "help":
		usage(os.Stdout)
		return nil
	case !known:
		return usagef("there is no command %q; see taskq -h", name)
	}
	return said(start(ctx, name, c, args[1:], &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}

// said is err as it is told to people: with the exit status that belongs to it, and
// fit for a terminal, whatever is in the name of a task.
func said(err error) error {
	var wrong *taskqueue.InvalidError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, taskqueue.ErrNotFound):
		err = service.WithStatus(err, 3)
	case errors.As(err, &wrong):
		err = service.WithStatus(err, 2)
	}
	return &saidError{err}
}

type saidError struct{ err error }

func (e *saidError) Error() string {
	return plain.Text(strings.ReplaceAll(e.err.Error(), "taskqueue: ", ""))
}

func (e *saidError) Unwrap() error { return e.err }

// flags are those that every command has.
type flags struct {
	*flag.FlagSet
	queue *string
}

func newFlags(name string, e *env) flags {
	f := flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.StringVar(&e.url, "store", "", "the `URL` of the store, sqlite:path, postgres://user:password@host/db or redis://user:password@host:port/db; without it $TASKQ_STORE, which ps does not show, or "+defaultStore)
	f.queue = f.String("queue", taskqueue.DefaultQueue, "the `name` of the queue")
	f.BoolVar(&e.json, "json", false, "write JSON")
	return f
}

// alone are commands that open what they need themselves.
var alone = map[string]bool{"demo": true}

// start reads the flags, opens the store and runs a command.
func start(ctx context.Context, name string, c command, args []string, e *env) (err error) {
	f := newFlags(name, e)
	act := c.set(f.FlagSet)
	if e.args, err = parse(f.FlagSet, args); errors.Is(err, flag.ErrHelp) {
		return help(e.stdout, f.FlagSet, name, c)
	} else if err == nil {
		err = wrongArgs(name, c, e.args)
	}
	if err != nil {
		return err
	}
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	e.queueGiven = given["queue"]
	if e.queueGiven && len(e.args) > 0 && strings.HasPrefix(c.args, "[queue") {
		return usagef("queues are named by -queue and by arguments such as %q: use one of them", e.args[0])
	}
	if !given["store"] {
		e.url = cmp.Or(os.Getenv("TASKQ_STORE"), defaultStore)
	}
	if alone[name] {
		return act(ctx, e)
	}
	if err := e.open(ctx, name); err != nil {
		return err
	}
	q, err := taskqueue.New(e.store, taskqueue.Observe(func(event taskqueue.Event) {
		if e.observe != nil {
			e.observe(event)
		}
	}))
	if err == nil {
		e.queue = q.In(*f.queue)
		err = act(ctx, e)
	}
	return errors.Join(err, e.store.Close())
}

// help tells how a command is used.
func help(w io.Writer, f *flag.FlagSet, name string, c command) error {
	_, _ = fmt.Fprintf(w, "Usage: taskq %s [flags] %s\n\nTo %s.\n", name, c.args, c.what)
	if more[name] != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", more[name])
	}
	_, _ = fmt.Fprintln(w)
	f.SetOutput(w)
	f.PrintDefaults()
	_, err := fmt.Fprint(w, "\n"+exits)
	return err
}

const exits = `Exit status: 0 well, 1 failed, 2 wrong command line, 3 no such task or in no state for
that, 128+n stopped by signal n before it was done.
`

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "Usage: taskq command [flags] ...\n\nCommands:\n")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", name, commands[name].what)
	}
	_, _ = fmt.Fprint(w, "\ntaskq command -h tells the flags of a command.\n"+exits)
}

// parse reads flags, which may stand before the arguments and behind them, and returns
// the arguments. A text behind -- is an argument, whatever it looks like.
func parse(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			return nil, flagError(f, err)
		}
		left := f.Args()
		if ended := len(args) > len(left) && args[len(args)-len(left)-1] == "--"; ended || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// flagError says what is wrong with a flag, and what to do.
func flagError(f *flag.FlagSet, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	hint := ""
	if strings.Contains(err.Error(), "parse error") {
		for _, name := range strings.Fields(err.Error()) {
			if d := f.Lookup(strings.Trim(name, "-:")); d != nil && strings.HasPrefix(name, "-") {
				if _, is := d.Value.(flag.Getter).Get().(interface{ Seconds() float64 }); is {
					hint = " (write a time as 90s, 10m or 1h30m)"
				}
			}
		}
	}
	return usagef("%v%s; see taskq %s -h", err, hint, f.Name())
}

// wrongArgs says that a command line has arguments that the command does not take.
func wrongArgs(name string, c command, args []string) error {
	switch {
	case c.args == "" && len(args) > 0:
		return usagef("%s takes no argument such as %q; a queue is named with -queue; see taskq %s -h", name, args[0], name)
	case strings.HasPrefix(c.args, "id") && len(args) == 0:
		return usagef("%s needs the id of a task, or several; taskq list shows them", name)
	}
	return nil
}

// usagef is a wrong command line.
func usagef(format string, args ...any) error {
	return service.WithStatus(fmt.Errorf(format, args...), 2)
}
