// Server takes orders over HTTP, has a worker do them, and writes what was done to
// a journal, many at a time. The worker panics now and then, as workers do. An
// order that was accepted is in the journal when the program ends, whatever
// happens: that is what the example is about.
//
//	go run ./examples/server
//	curl -d 'two coffees' http://127.0.0.1:8080/orders
//
// Four services run side by side, and are stopped one after the other: server.go
// takes orders, report.go says how things stand, worker.go does them, journal.go
// writes them down. main.go puts them together.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/jobqueue"
	"github.com/ambit-go/ambit/service"
)

// A config is what the flags say.
type config struct {
	addr, journal string
	panics        int
	report        time.Duration
	grace, delay  time.Duration
}

const about = `Server takes orders over HTTP, POST /orders, and writes those that were done to a
journal. GET /health says whether it takes orders. The first SIGINT or SIGTERM
drains it: it takes no more, and does what it has accepted. The second one cuts
that short.

	server [flags]

Flags:

`

const exit = `
Exit status: 0 all that was accepted is in the journal, 1 it is not, 2 wrong
arguments, 130 and 143 cut short by a signal.
`

func main() {
	c := parse(os.Args[1:])
	service.Main(c.run, service.Grace(c.grace), service.Delay(c.delay))
}

// parse reads the flags. It ends the program if they are wrong, or ask for help.
func parse(args []string) *config {
	c, flags := new(config), flag.NewFlagSet("server", flag.ContinueOnError)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "listen on this `address`; with port 0 one that is free")
	flags.StringVar(&c.journal, "journal", "", "append to this `file`, not to the standard output")
	flags.IntVar(&c.panics, "panics", 100, "the worker panics at each `n`th attempt; 0: never")
	flags.DurationVar(&c.report, "report", 10*time.Second, "the `interval` at which it says how things stand")
	flags.DurationVar(&c.grace, "grace", 20*time.Second, "the `time` that a drain may take")
	flags.DurationVar(&c.delay, "delay", 0, "the `time` that it serves on, unhealthy, before it drains")
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Print(about)
		flags.PrintDefaults()
		fmt.Print(exit)
		os.Exit(0)
	}
	switch {
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.report <= 0:
		err = errors.New("-report must be more than 0")
	case c.panics < 0 || c.grace < 0 || c.delay < 0:
		err = errors.New("-panics, -grace and -delay must not be negative")
	}
	if err != nil {
		say("%v\nRun 'server -h' for the flags.", err)
		os.Exit(2)
	}
	return c
}

// run runs the services. They start in this order and stop in reverse, each when
// the one before it has ended: nothing is taken away from under anybody.
func (c *config) run(ctx context.Context) error {
	l, err := net.Listen("tcp", c.addr) // before anything is started: the address may be taken
	if err != nil {
		return err
	}
	j := newJournal(c.journal)
	w := &worker{queue: jobqueue.New[order](jobqueue.Capacity(10_000)), journal: j, panics: int64(c.panics)}
	s := &server{queue: w.queue}
	r := report{s, w, j}
	defer r.say()
	say("listening on http://%s", l.Addr())
	return service.Run(ctx, []service.Service{
		{Name: "journal", Run: j.run, Drain: j.drain, Startup: 10 * time.Second},
		{Name: "worker", Run: w.run, Drain: w.drain},
		{Name: "report", Run: r.every(c.report)},
		service.HTTP("orders", l, &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}),
	})
}

// say tells the user something. The standard output is for the journal.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "server: "+format+"\n", args...) }
