// Server takes orders over HTTP, has a worker do them, and writes what was done to
// a journal, many at a time. The worker panics now and then, as workers do. An
// order that was accepted is in the journal when the program ends, whatever
// happens: that is what the example is about.
//
//	go run ./examples/server
//	curl -d 'two coffees' http://127.0.0.1:8080/orders
//
// Three services run side by side, and are stopped one after the other: server.go
// takes orders, report.go says how things stand, worker.go does them. They stand on
// a resource: journal.go writes them down. main.go puts them together.
package main

import (
	"context"
	"flag"
	"fmt"
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

const about = `usage: server [flags]

Server takes orders over HTTP, POST /orders, and writes those that were done to a
journal. GET /health says whether it takes orders. The first SIGINT or SIGTERM
drains it: it takes no more, and does what it has accepted. The second one cuts
that short.

Exit status: 0 all that was accepted is in the journal, 1 it is not, 2 wrong
arguments, 130 and 143 cut short by a signal.

`

func main() {
	c := new(config)
	flag.StringVar(&c.addr, "addr", "127.0.0.1:8080", "listen on this `address`; with port 0 one that is free")
	flag.StringVar(&c.journal, "journal", "", "append to this `file`, not to the standard output")
	flag.IntVar(&c.panics, "panics", 100, "the worker panics at each `n`th attempt; 0: never")
	flag.DurationVar(&c.report, "report", 10*time.Second, "the `interval` at which it says how things stand")
	flag.DurationVar(&c.grace, "grace", 20*time.Second, "the `time` that a drain may take")
	flag.DurationVar(&c.delay, "delay", 0, "the `time` that it serves on, unhealthy, before it drains")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || c.report <= 0 || c.panics < 0 || c.panics == 1 || c.grace < 0 || c.delay < 0 {
		say("only flags; -report is more than 0, -panics 0 or more than 1, -grace and -delay are not negative")
		os.Exit(2) // whoever panics each time does nothing
	}
	service.Main(c.run, service.Grace(c.grace), service.Delay(c.delay))
}

// run runs the services. They start in this order and stop in reverse, each when
// the one before it has ended: nothing is taken away from under anybody.
func (c *config) run(ctx context.Context) error {
	l, err := net.Listen("tcp", c.addr) // before anything is started: the address may be taken
	if err != nil {
		return err
	}
	j := &journal{path: c.journal}
	w := &worker{queue: jobqueue.New[order](jobqueue.Capacity(10_000)), journal: j, panics: int64(c.panics)}
	s := &server{queue: w.queue}
	r := report{s, w, j}
	defer r.say()
	say("listening on http://%s", l.Addr())
	return service.Run(ctx, []service.Service{
		service.Resource("journal", j.open),
		{Name: "worker", Run: w.run, Drain: w.drain},
		{Name: "report", Run: r.every(c.report)},
		service.HTTP("orders", l, &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}),
	})
}

// say tells the user something. The standard output is for the journal.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "server: "+format+"\n", args...) }
