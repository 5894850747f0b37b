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
// used, 2 when the arguments are wrong, 130 when interrupted and 143 when
// terminated. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func main() { program(allPools).Main() }

// run prints the table, and what was wrong with the order.
func run(ctx context.Context, cfg config, pools []pool, std cli.Streams) error {
	var faults []string
	err := async.Scope(ctx, func(ctx context.Context) (err error) {
		cli.FailOnSignal(ctx)
		faults, err = table(ctx, cfg, pools, std.Out)
		return err
	}, async.Name("pools"))
	if err != nil || len(faults) == 0 {
		return cli.SignalAlone(err)
	}
	for _, f := range faults {
		fmt.Fprintf(std.Err, "pools: %s\n", f)
	}
	return &cli.ExitError{Code: cli.StatusFailed}
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
