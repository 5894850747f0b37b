// Kvq adds items to a durable queue, takes them, and shows what there is.
//
//	kvq put one two three
//	kvq take -workers 4 -- ./handle
//	kvq stats
//
// The queue is in a file of this folder, kvq.db, or where -store says: sqlite:path or
// etcd:host:port,host:port, or etcd:https://host:port with -cacert, -cert, -key and -user. Any number of processes
// may use a file at the same time.
//
// The exit status is 0 if all went well, 1 if not, 2 if the command line is wrong, 3 if
// there is no such item, and 128 + n when a signal n stopped it before it was done.
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

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/service"
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
		"put":       {"[value ...]", "add items: the arguments, or the lines of stdin", putCommand},
		"take":      {"[-- command ...]", "run a command for each item, or write the items to stdout", takeCommand},
		"peek":      {"", "show the first items, and take none", peekCommand},
		"len":       {"", "say how many items are ready", lenCommand},
		"stats":     {"", "show how many items there are, and who works on them", statsCommand},
		"queues":    {"", "list the queues of a store", queuesCommand},
		"purge":     {"", "delete the ready items", purgeCommand},
		"dead":      {"", "list the dead letters", deadCommand},
		"requeue":   {"[key ...]", "put dead letters back to their places", requeueCommand},
		"discard":   {"[key ...]", "delete dead letters", discardCommand},
		"configure": {"", "show what becomes of items that fail, and how long ids stand, for all who use the queue, or change it", configureCommand},
		"doctor":    {"", "check what is stored, and whether the store can carry a queue", doctorCommand},
		"bench":     {"", "measure queues beside each other on a store: items a second, and conflicts", benchCommand},
		"import":    {"FILE", "copy all queues of a file that an earlier version has made, with bbolt, into the store", importCommand},
		"demo":      {"", "processes that add and take items, one of which is killed, and the report", demoCommand},
	}
}

// more is what there is to know of a command beside its flags.
var more = map[string]string{
	"put":       "Without arguments each line of stdin is an item; with -whole all of stdin is one. What was\nadded is in the store when it ends; of lines, when the next ones are read. With -id a\nrepeat adds nothing, and says where the first item with that id stands, or stood.",
	"take":      "The item is on the stdin of the command, and in KVQ_ITEM if it has no zero byte and is not\ntoo long; KVQ_KEY, KVQ_ATTEMPT, KVQ_FENCE and KVQ_QUEUE are the others,\nand KVQ_GROUP for an item of a group. Status 0: it is done and\ngone. 75: it goes back, and no attempt is spent. Else it has failed, goes back to its place, and\nis tried again. Without a command items are written to stdout, one a line. A signal tells the\ncommands to stop, and what they have not done goes back.",
	"queues":    "A name that is not plain text is quoted as in Go; with -json one that is no text in UTF-8 is in base64,\nunder that name. Each queue is listed that was ever opened.",
	"purge":     "It asks for the name of the queue on stdin, unless -yes is there. Items that are claimed, also while it\nruns, stay. It says how many it has deleted, also when it fails or is stopped.",
	"dead":      "Those are shown that match all flags. When an item was added is by the clock of its producer; one of\nwhich that is not known is neither older nor younger than anything.",
	"requeue":   "The keys are those that dead shows. Instead of keys: -all, or the flags of dead.",
	"discard":   "The keys are those that dead shows. Instead of keys: -all, or the flags of dead; then it asks for the name\nof the queue on stdin, unless -yes is there.",
	"peek":      "Values are quoted as in Go. -raw writes them as they are, one a line. With -json a value that is no\ntext in UTF-8 is in base64, under that name.",
	"import":    "The file must be of kvqueue with bolt:path, and no process may have it. The store must have none\nof its keys: nothing is copied otherwise. Items, attempts and dead letters stay as they are. What\nwas claimed goes back, as after a crash. The file itself is not changed.",
	"configure": "Without flags it shows what the queue has. kvq take has the same flags: they are used if nobody\nhas chosen before.",
	"doctor":    "It reads every key of the queue. Others may use the queue meanwhile.",
	"bench":     "The first two and the last are recipes that others use; they delete an item when they take it,\nwhere kvqueue claims and acknowledges, which is a transaction more. Conflicts are those of all\ntransactions. With -etcd it works under a prefix of its own, which it deletes at the end; others\nwho use the cluster will notice.",
	"demo":      "It works in a file of its own in the folder for temporary files, and takes some seconds.",
}

// env is what a command works with.
type env struct {
	args   []string
	url    string // of the store
	name   string // of the queue
	prefix string
	json   bool
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	store *store
	// options are those that the command adds to the ones that all have.
	options []kvqueue.Option
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

// hidden are commands that demo and bench start for themselves.
var hidden = map[string]func(ctx context.Context, args []string) error{
	"demo-producer": demoProducer,
	"demo-consumer": demoConsumer,
}

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
		return usagef("there is no command %q; see kvq -h", name)
	}
	err := start(ctx, name, c, args[1:], &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	var wrong *kvqueue.InvalidError
	if errors.As(err, &wrong) {
		err = &statusError{err, 2}
	}
	return err
}

// alone are commands that open what they need themselves.
var alone = map[string]bool{"demo": true, "bench": true}

// silentOnes are commands that have nothing to write as JSON.
var silentOnes = map[string]bool{"take": true, "requeue": true, "discard": true, "purge": true, "import": true}

// start reads the flags, opens the store and runs a command.
func start(ctx context.Context, name string, c command, args []string, e *env) (err error) {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var how access
	if !alone[name] {
		f.StringVar(&e.url, "store", cmp.Or(os.Getenv("KVQ_STORE"), defaultStore), "the `URL` of the store: sqlite:path, or etcd:host:port,host:port; the default is that of $KVQ_STORE")
		how.flags(f)
		f.StringVar(&e.name, "queue", "default", "the `name` of the queue")
		f.StringVar(&e.prefix, "prefix", "kvq", "with what the `keys` of all queues begin")
		if !silentOnes[name] {
			f.BoolVar(&e.json, "json", false, "write JSON")
		}
	}
	act := c.set(f)
	if e.args, err = parse(f, args); errors.Is(err, flag.ErrHelp) {
		return help(e.stdout, f, name, c)
	} else if err != nil {
		return err
	}
	if c.args == "" && len(e.args) > 0 {
		return usagef("%s takes no argument such as %q; a queue is named with -queue; see kvq %s -h", name, e.args[0], name)
	}
	if alone[name] {
		return act(ctx, e)
	}
	if e.store, err = heardStore(ctx, e.url, makes[name], how, e.notef); err != nil {
		return err
	}
	return errors.Join(act(ctx, e), e.store.close())
}

// parse reads flags, which may stand before the arguments and behind them, and returns
// the arguments. A text behind -- is an argument, whatever it looks like.
func parse(f *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, usagef("%v; see kvq %s -h", err, f.Name())
		}
		left := f.Args()
		if ended := len(args) > len(left) && args[len(args)-len(left)-1] == "--"; ended || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// with opens the queue, and calls f with it.
func (e *env) with(ctx context.Context, f func(q *kvqueue.Queue) error) error {
	q, err := kvqueue.Open(ctx, e.store.kv, e.name, append([]kvqueue.Option{kvqueue.Prefix(e.prefix), kvqueue.CompactedElsewhere()}, e.options...)...)
	if err != nil {
		return err
	}
	err = f(q)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	return errors.Join(err, q.Close(ctx))
}

func (e *env) sayf(format string, args ...any) { _, _ = fmt.Fprintf(e.stdout, format, args...) }
func (e *env) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stderr, "kvq: "+format+"\n", args...)
}

// help tells how a command is used.
func help(w io.Writer, f *flag.FlagSet, name string, c command) error {
	_, _ = fmt.Fprintf(w, "Usage: kvq %s\n\nTo %s.\n", strings.TrimSpace(name+" [flags] "+c.args), c.what)
	if more[name] != "" {
		_, _ = fmt.Fprintf(w, "\n%s\n", more[name])
	}
	_, _ = fmt.Fprintln(w)
	f.SetOutput(w)
	f.PrintDefaults()
	_, err := fmt.Fprint(w, "\n"+exits)
	return err
}

const exits = `Exit status: 0 well, 1 failed, 2 wrong command line, 3 no such item, 128+n stopped by
signal n before it was done.
`

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "Usage: kvq command [flags] ...\n\nCommands:\n")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		_, _ = fmt.Fprintf(w, "  %-9s %s\n", name, commands[name].what)
	}
	_, _ = fmt.Fprint(w, "\nkvq command -h tells the flags of a command.\n"+exits)
}
