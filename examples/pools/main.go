// Pools runs the same ordered work on five goroutine pools: ants, pond, conc,
// errgroup, and goroutines limited by a semaphore. Each of many workers has its
// tasks run in order, one at a time, without a lock; the pools know nothing of
// that.
//
//	go run ./examples/pools
//	go run ./examples/pools -workers 10000 -tasks 100 -size 8 -batch 16
//
// It is meant to be copied: adapters.go is what stands between a scheduler and
// each pool, and says what to watch for; pools.go opens and closes them;
// counter.go counts submissions; work.go is the work and the check; flags.go
// reads the arguments.
//
// It exits with 0 if the order was kept, 1 if it was not or a pool could not be
// used, 2 when the arguments are wrong, and 130 when interrupted. (go run hides
// the status: it prints it and exits with 1.)
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

const (
	statusDone      = 0
	statusFailed    = 1
	statusUsage     = 2
	statusInterrupt = 130
)

func main() {
	os.Exit(run(context.Background(), allPools, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with everything it depends on as an argument.
func run(ctx context.Context, pools []pool, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage())
		return statusDone
	case err != nil:
		fmt.Fprintf(stderr, "pools: %v\nRun 'pools -h' for the flags.\n", err)
		return statusUsage
	}
	var faults []string
	err = async.Scope(ctx, func(ctx context.Context) (err error) {
		failOnSignal(ctx)
		faults, err = table(ctx, cfg, pools, stdout)
		return err
	}, async.Name("pools"))

	var sig *signalError
	switch {
	case errors.As(err, &sig):
		fmt.Fprintf(stderr, "pools: %v\n", sig)
		return statusInterrupt
	case err != nil:
		fmt.Fprintf(stderr, "pools: %v\n", err)
		return statusFailed
	}
	for _, f := range faults {
		fmt.Fprintf(stderr, "pools: %s\n", f)
	}
	if len(faults) > 0 {
		return statusFailed
	}
	return statusDone
}

// table runs the work on one pool after the other, prints a line for each as
// soon as it is there, and returns what was wrong with the order.
func table(ctx context.Context, cfg config, pools []pool, stdout io.Writer) (faults []string, err error) {
	w := bufio.NewWriter(stdout)
	fmt.Fprintf(w, "%s workers, %s tasks each, %s goroutines, batches of %s\n\n",
		count(cfg.workers), count(cfg.tasks), count(cfg.size), count(cfg.batch))
	fmt.Fprintf(w, "%-10s %12s %12s %14s %12s\n", "pool", "tasks", "submissions", "tasks for each", "time")
	for _, p := range pools {
		if err := w.Flush(); err != nil {
			return nil, fmt.Errorf("cannot write the table: %w", err)
		}
		r, err := measure(ctx, cfg, p)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "%-10s %12s %12s %14.1f %12s\n",
			r.pool, count(r.tasks), count(int(r.submissions)), r.each(), r.took.Round(10*time.Microsecond))
		for _, f := range r.faults {
			faults = append(faults, r.pool+": "+f)
		}
	}
	if len(faults) == 0 {
		fmt.Fprint(w, "\nEvery worker saw its tasks in order, one at a time.\n")
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("cannot write the table: %w", err)
	}
	return faults, nil
}

// each is how many tasks there were for each submission.
func (r result) each() float64 { return float64(r.tasks) / float64(max(r.submissions, 1)) }

// count is n with a comma before each three digits.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A signalError is the cause of work that a signal has stopped.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return "stopped by signal: " + e.sig.String() }

// failOnSignal fails the scope of ctx at the first SIGINT or SIGTERM. A second
// one has its usual effect, and ends the process at once.
func failOnSignal(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	async.Go(ctx, func(ctx context.Context) error {
		defer signal.Stop(signals)
		select {
		case sig := <-signals:
			return &signalError{sig}
		case <-ctx.Done():
			return nil
		}
	}, async.Daemon(), async.Name("signals"))
}
