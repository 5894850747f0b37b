// Waitports waits until services are up: until they accept TCP connections, or, if
// they are pods, until these run. It waits for all of them, or for any. Each has a
// limit and an outcome of its own, and the outcomes are reported in the order in
// which the services were given, whichever is faster.
//
//	go run ./examples/waitports -timeout 30s db=127.0.0.1:5432 cache=127.0.0.1:6379@5s
//	go run ./examples/waitports -any primary=10.0.0.1:5432 replica=10.0.0.2:5432
//	go run ./examples/waitports web=http://127.0.0.1:8001/api/v1/namespaces/ci/pods/web@2m
//	waitports db=127.0.0.1:5432 && make integration-test
//
// The API of a pod is that of Kubernetes, as kubectl proxy serves it.
//
// wait.go waits for one, for all and for any; probe.go has the two kinds of probe;
// report.go tells what came of it.
//
// It exits with 0 if all are up, or one with -any; 124 if not, in time; 1 if one will
// never be, or the report cannot be written; 2 when the arguments are wrong, 130 when
// interrupted and 143 when terminated. (go run hides the status: it prints it and
// exits with 1.)
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ambit-go/ambit/service"
)

func main() {
	w := waiter{tell: func(string, ...any) {}}
	flag.BoolVar(&w.any, "any", false, "one that is up is enough")
	flag.DurationVar(&w.interval, "interval", time.Second, "ask again after at most this `time`; at first it is less")
	flag.IntVar(&w.steady, "steady", 1, "call a service up when `n` probes in a row say so")
	timeout := flag.Duration("timeout", 30*time.Second, "wait at most this `time` for each that has no limit of its own")
	verbose := flag.Bool("v", false, "tell on stderr whenever something changes")
	flag.Parse()
	if *verbose {
		w.tell = log.New(os.Stderr, "waitports: ", 0).Printf // any number of goroutines may use it
	}
	service.Main(func(ctx context.Context) error {
		if *timeout <= 0 || w.interval <= 0 || w.steady <= 0 {
			return usage("-timeout, -interval and -steady must be more than 0")
		}
		targets, err := parseTargets(flag.Args(), *timeout)
		if err != nil {
			return err
		}
		return w.run(ctx, targets)
	})
}

// A failure is an error with the exit status that it makes.
type failure struct {
	error
	status int
}

// ExitStatus is what package service asks for.
func (f *failure) ExitStatus() int { return f.status }

func usage(format string, args ...any) error { return &failure{fmt.Errorf(format, args...), 2} }

// run waits and reports, as far as it got if it was stopped.
func (w *waiter) run(ctx context.Context, targets []target) error {
	outcomes := w.wait(ctx, targets)
	_, err := os.Stdout.WriteString(report(outcomes))
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = verdict(outcomes, w.any)
	}
	return err
}
