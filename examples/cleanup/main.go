// Cleanup runs a job and removes what that has made, however the job ends: phase
// after phase, with an HTTP request for each resource, although the job has been
// cancelled. Every phase has time of its own, so one that hangs takes none from
// the others, and every resource that is left is told.
//
//	go run ./examples/cleanup -demo
//	go run ./examples/cleanup -timeout 10m plan.txt make integration-test
//
// A plan is a list of phases, each with a name and, if it likes, its time, and
// under it the requests that can be made side by side:
//
//	phase containers 20s
//	DELETE http://127.0.0.1:8080/containers/web
//	DELETE http://127.0.0.1:8080/containers/db
//	phase volumes
//	DELETE http://127.0.0.1:8080/volumes/data
//
// It is meant to be copied: main.go has the scope of the job and its exit hook;
// phases.go goes through the phases; remove.go removes one resource; errors.go
// says what was left, and why the job has ended; plan.go reads a plan; job.go
// runs a command; demo.go is an API that fails in all ways.
//
// It exits as the job does: with its status, with 124 if it took too long, 130
// when interrupted, 143 when terminated and 141 if nobody reads its output any
// more. 125 to 127 is for a command that could not be run, and 125 also for one
// that is well when something could not be removed; 1 if nothing can be printed,
// and 2 when the arguments or the plan are wrong. (go run hides the status: it
// prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func main() { program().Main() }

// A config is what the flags say.
type config struct {
	timeout  time.Duration // of the job; 0: none
	grace    time.Duration // of its command, between TERM and KILL
	budget   time.Duration // of a phase that has none of its own
	request  time.Duration // of one request
	parallel int
	demo     bool
}

func program() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "cleanup",
		Synopsis: "[flags] plan command [argument...]",
		About: `Cleanup runs a command, and when that has ended, in whatever way, removes what
it has left behind. The plan is a file that says how, phase by phase:

	phase containers 20s
	DELETE http://127.0.0.1:8080/containers/web
	phase volumes
	DELETE http://127.0.0.1:8080/volumes/data

A request is made again after 5xx, 408, 429, and lost connections. The first
interrupt stops the command, the next kills it. One that comes while things are
removed ends everything at once.`,
		Exit: `that of the command; 124 it took too long, 130 interrupted, 143
terminated, 141 nobody reads its output; 126 it is not executable, 127 it is not
there; 125 it is well and something was not removed, or it could not be run; 1
nothing can be printed, 2 wrong arguments or a wrong plan`,
		Flags: cfg.define,
		Run:   cfg.main,
	}
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.DurationVar(&cfg.timeout, "timeout", 0, "stop the command after this `time`; 0 for no limit")
	flags.DurationVar(&cfg.grace, "grace", 10*time.Second, "kill a command that is told to stop after this `time`")
	flags.DurationVar(&cfg.budget, "budget", 30*time.Second, "give this `time` to a phase that has none of its own")
	flags.DurationVar(&cfg.request, "request-timeout", 5*time.Second, "give up on a request after this `time`, and make another")
	flags.IntVar(&cfg.parallel, "parallel", 8, "make at most `n` requests at the same time")
	flags.BoolVar(&cfg.demo, "demo", false, "clean up after a job of its own, with an API that fails in all ways")
}

func (cfg *config) check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"budget", cfg.budget}, {"grace", cfg.grace}, {"request-timeout", cfg.request}} {
		if d.value <= 0 {
			return cli.Usagef("-%s must be more than 0", d.name)
		}
	}
	switch {
	case cfg.timeout < 0:
		return cli.Usagef("-timeout must not be negative; 0 sets no limit")
	case cfg.parallel < 1:
		return cli.Usagef("-parallel must be 1 or more")
	}
	return nil
}

// main looks at the arguments and runs what they ask for.
func (cfg *config) main(ctx context.Context, args []string, std cli.Streams) error {
	err := cfg.check()
	switch {
	case err != nil:
		return err
	case cfg.demo && len(args) > 0:
		return cli.Usagef("-demo has a plan and a job of its own; leave out %q", args[0])
	case cfg.demo:
		return runDemo(ctx, *cfg, std)
	case len(args) < 2:
		return cli.Usagef("name a plan and a command, like plan.txt make test, or try -demo")
	}
	plan, err := readPlan(args[0], cfg.budget)
	if err != nil {
		return err
	}
	c, done := newCleaner(*cfg, &cli.Out{W: std.Out})
	defer done()
	return run(ctx, *cfg, c, plan, command(args[1:], cfg.grace, std))
}

// newCleaner makes a cleaner, and a function that closes its connections.
func newCleaner(cfg config, out *cli.Out) (*cleaner, func()) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{Transport: transport, Timeout: cfg.request,
		// A redirect would be followed with GET: that something is there to be
		// looked at does not say that anything was removed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &cleaner{client: client, parallel: cfg.parallel, out: out}, transport.CloseIdleConnections
}

// run runs the job in a scope, and has the scope clean up when it ends. By then
// the job, and the watch for signals, have ended, and so has the scope's
// context, with a signal, a timeout or whatever else as the cause. An exit hook
// has a context of its own.
func run(ctx context.Context, cfg config, c *cleaner, plan []phase, job func(context.Context) error) error {
	cli.FailWritesToClosedPipes() // or there would be no cleaning up
	ending := new(endError)
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(ctx context.Context, outcome error) error {
			ending.outcome = outcome
			c.out.Printf("job: %s\n", ending.why())
			return c.cleanUp(ctx, plan)
		})
		err := job(ctx)
		ending.stopped = context.Cause(ctx)
		if own := new(jobError); ending.stopped == nil && errors.As(err, &own) {
			ending.stopped = own.cause
		}
		return err
	}, async.Name("job"), async.Timeout(cfg.timeout), async.HookTimeout(total(plan)))
	switch lost := c.out.Err(); {
	case err == nil && errors.Is(lost, syscall.EPIPE):
		return &cli.ExitError{Code: cli.StatusPipe}
	case err == nil:
		return lost
	}
	ending.err = err
	return ending
}

// total is more than the time that all phases have together.
func total(plan []phase) time.Duration {
	d := time.Minute
	for _, p := range plan {
		d += p.budget
	}
	return d
}
