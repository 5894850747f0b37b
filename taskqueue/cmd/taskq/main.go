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
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/ambit-go/ambit/service"
	"github.com/ambit-go/ambit/taskqueue"
	_ "github.com/ambit-go/ambit/taskqueue/filestore"
	_ "github.com/ambit-go/ambit/taskqueue/redisstore"
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
		"list":    {"", "list the tasks in a state", listCommand},
		"show":    {"id ...", "show all that is known of tasks", showCommand},
		"stats":   {"[queue ...]", "show the figures of queues", statsCommand},
		"cancel":  {"id ...", "end tasks that wait, and stop those that run", actCommand(taskqueue.ActCancel)},
		"retry":   {"id ...", "have dead and cancelled tasks run again", actCommand(taskqueue.ActRetry)},
		"promote": {"id ...", "have tasks run now that wait for their time", actCommand(taskqueue.ActPromote)},
		"delete":  {"id ...", "forget tasks that do not run", actCommand(taskqueue.ActDelete)},
		"purge":   {"state", "forget all tasks in a state", purgeCommand},
		"pause":   {"", "have no more tasks of the queue started", pauseCommand(true)},
		"resume":  {"", "the inverse of pause", pauseCommand(false)},
		"audit":   {"", "check what is stored; nobody else should use it meanwhile", auditCommand},
		"demo":    {"", "a thousand tasks, failures and a killed worker, and the report of an auditor", demoCommand},
	}
}

// env is what a command works with.
type env struct {
	args   []string
	store  taskqueue.Store
	queue  *taskqueue.Queue
	url    string
	json   bool
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// A statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

func (e *statusError) ExitStatus() int { return e.status }
func (e *statusError) Unwrap() error   { return e.error }

// usagef is a wrong command line.
func usagef(format string, args ...any) error { return &statusError{fmt.Errorf(format, args...), 2} }

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
	err := start(ctx, name, c, args[1:], &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	if errors.Is(err, taskqueue.ErrNotFound) {
		return &statusError{err, 3}
	}
	var wrong *taskqueue.InvalidError
	if errors.As(err, &wrong) {
		return &statusError{err, 2}
	}
	return err
}

// start opens the store and runs a command.
func start(ctx context.Context, name string, c command, args []string, e *env) error {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	url := os.Getenv("TASKQ_STORE")
	if url == "" {
		url = "file:taskq.db"
	}
	f.StringVar(&e.url, "store", url, "the `URL` of the store: file:path or redis://host:port/db; $TASKQ_STORE")
	queue := f.String("queue", taskqueue.DefaultQueue, "the `name` of the queue")
	f.BoolVar(&e.json, "json", false, "write JSON")
	act := c.set(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprintf(e.stdout, "Usage: taskq %s [flags] %s\n\nTo %s.\n\n", name, c.args, c.what)
			f.SetOutput(e.stdout)
			f.PrintDefaults()
			return nil
		}
		return usagef("%v; see taskq %s -h", err, name)
	}
	e.args = f.Args()
	if name == "demo" {
		return act(ctx, e)
	}
	store, err := taskqueue.Open(ctx, e.url)
	if err != nil {
		return err
	}
	q, err := taskqueue.New(store)
	if err == nil {
		e.store, e.queue = store, q.In(*queue)
		err = act(ctx, e)
	}
	return errors.Join(err, store.Close())
}

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "Usage: taskq command [flags] ...\n\nCommands:\n")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		_, _ = fmt.Fprintf(w, "  %-8s %s\n", name, commands[name].what)
	}
	_, _ = fmt.Fprint(w, "\ntaskq command -h tells the flags of a command. Exit status: 0 well, 1 failed, 2 wrong\ncommand line, 3 no such task or in no state for that, 128+n stopped by signal n.\n")
}
