// Waitports waits until services accept TCP connections: all of them, or any.
// Each has a limit and an outcome of its own, and the outcomes are reported in
// the order in which the services were given, whichever is faster.
//
//	go run ./examples/waitports -demo
//	go run ./examples/waitports -timeout 30s db=127.0.0.1:5432 cache=127.0.0.1:6379@5s
//	go run ./examples/waitports -any primary=10.0.0.1:5432 replica=10.0.0.2:5432
//	waitports db=127.0.0.1:5432 && make integration-test
//
// It is meant to be copied: wait.go waits for one, for all and for any;
// target.go reads what is to be waited for; report.go tells what came of it;
// demo.go opens ports to wait for.
//
// It exits with 0 if all are up, or one with -any; 124 if not, in time; 1 if it
// could not tell, 2 when the arguments are wrong, 130 when interrupted and 143
// when terminated. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func main() { program().Main() }

// A config is what the flags say.
type config struct {
	any      bool
	timeout  time.Duration // of a target that has no limit of its own
	interval time.Duration // the longest pause between attempts
	steady   int           // how many connections in a row make a target up
	verbose  bool
	demo     bool
}

func program() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "waitports",
		Synopsis: "[flags] [name=]host:port[@limit]...",
		About: `Waitports waits until services accept TCP connections: all of them, or with
-any at least one. Each has a limit of its own, 30s unless it says so, as in
db=127.0.0.1:5432@2m. What became of each is reported on stdout, in the order
given.`,
		Exit: `0 all are up, or one with -any; 124 they are not, in time; 1 the
report cannot be written, 2 wrong arguments, 130 interrupted, 143 terminated. A
wait that was stopped reports what it knows`,
		Flags: cfg.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			targets, err := cfg.check(args)
			if err != nil {
				return err
			}
			return run(ctx, cfg, targets, std)
		},
	}
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.BoolVar(&cfg.any, "any", false, "one that is up is enough")
	flags.DurationVar(&cfg.timeout, "timeout", 30*time.Second, "wait at most this `time` for each that has no limit of its own")
	flags.DurationVar(&cfg.interval, "interval", time.Second, "ask again after at most this `time`; at first it is less")
	flags.IntVar(&cfg.steady, "steady", 1, "call a port up when it has accepted `n` connections in a row")
	flags.BoolVar(&cfg.verbose, "v", false, "tell on stderr whenever something changes")
	flags.BoolVar(&cfg.demo, "demo", false, "wait for ports of its own: one up, one late, one never, one flapping")
}

// check looks at the numbers, and reads the targets.
func (cfg *config) check(args []string) ([]target, error) {
	switch {
	case cfg.timeout <= 0:
		return nil, cli.Usagef("-timeout must be more than 0")
	case cfg.interval <= 0:
		return nil, cli.Usagef("-interval must be more than 0")
	case cfg.steady < 1:
		return nil, cli.Usagef("-steady must be 1 or more")
	case cfg.demo && len(args) > 0:
		return nil, cli.Usagef("-demo has targets of its own; leave out %q", args[0])
	case cfg.demo:
		return nil, nil
	case len(args) == 0:
		return nil, cli.Usagef("name what to wait for, like db=127.0.0.1:5432, or try -demo")
	}
	return parseTargets(args, cfg.timeout)
}

// errNotUp is the outcome of a wait that was not stopped and not successful.
var errNotUp = errors.New("not up in time")

// run waits and reports, as far as it got if it was stopped.
func run(ctx context.Context, cfg config, targets []target, std cli.Streams) error {
	w := &waiter{dial: (&net.Dialer{}).DialContext, interval: cfg.interval, steady: cfg.steady, tell: func(string, ...any) {}}
	if cfg.verbose {
		w.tell = log.New(std.Err, "waitports: ", 0).Printf // any number of goroutines may use it
	}
	var outcomes []outcome
	err := async.Scope(ctx, func(ctx context.Context) (err error) {
		cli.FailOnSignal(ctx)
		if cfg.demo {
			if targets, err = openDemo(ctx); err != nil {
				return err
			}
		}
		outcomes = w.wait(ctx, targets, cfg.any)
		return nil
	}, async.Name("waitports"))

	if len(outcomes) > 0 {
		out := &cli.Out{W: std.Out}
		report(out, outcomes)
		err = errors.Join(err, out.Err())
	}
	if err != nil {
		return cli.SignalAlone(err)
	}
	return verdict(outcomes, cfg.any)
}
