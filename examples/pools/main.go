// Pools runs the same ordered work on five goroutine pools: ants, pond, conc,
// errgroup, and goroutines limited by a semaphore. Each of many workers has its
// tasks run in order, one at a time, without a lock; the pools know nothing of
// that.
//
//	go run ./examples/pools
//	go run ./examples/pools -workers 10000 -tasks 100 -size 8 -batch 16
//
// adapters.go is what stands between a scheduler and each pool, and says what to
// watch for; it is the part to copy. work.go is the work and the check.
//
// It exits with 0 if the order was kept, 1 if it was not or a pool could not be
// used, 2 when the arguments are wrong, 130 when interrupted and 143 when
// terminated. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/service"
)

// most is how many workers or goroutines there may be. No pool here is for more.
const most = 1_000_000

// A config is what the flags say.
type config struct {
	workers int
	tasks   int // of each worker
	size    int // of each pool
	batch   int
}

func main() {
	var cfg config
	flag.IntVar(&cfg.workers, "workers", 100, "run `n` workers")
	flag.IntVar(&cfg.tasks, "tasks", 1000, "give each worker `n` tasks")
	flag.IntVar(&cfg.size, "size", 4, "make each pool of `n` goroutines")
	flag.IntVar(&cfg.batch, "batch", 64, "have a worker offer its goroutine to others after `n` tasks")
	flag.Parse()
	service.Main(func(ctx context.Context) error {
		if err := cfg.check(flag.Args()); err != nil {
			return usageError{err}
		}
		return table(ctx, cfg, allPools, os.Stdout)
	})
}

// A usageError is about the arguments. Package service asks it for the exit status.
type usageError struct{ error }

func (usageError) ExitStatus() int { return 2 }

// check refuses numbers that make no sense.
func (cfg *config) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q; there are only flags, like -tasks 500", args[0])
	case cfg.workers < 1 || cfg.workers > most:
		return fmt.Errorf("-workers must be 1 to %d", most)
	case cfg.tasks < 1:
		return errors.New("-tasks must be 1 or more")
	case cfg.size < 1 || cfg.size > most:
		return fmt.Errorf("-size must be 1 to %d", most)
	case cfg.batch < 1:
		return errors.New("-batch must be 1 or more; with 1 workers take turns task by task")
	}
	return nil
}

// table runs the work on one pool after the other and prints a line for each as
// soon as it is there. Its error says what was wrong with the order.
func table(ctx context.Context, cfg config, pools []pool, stdout io.Writer) error {
	w := bufio.NewWriter(stdout)
	fmt.Fprintf(w, "%s workers, %s tasks each, %s goroutines, batches of %s\n\n",
		count(cfg.workers), count(cfg.tasks), count(cfg.size), count(cfg.batch))
	fmt.Fprintf(w, "%-10s %12s %12s %14s %12s\n", "pool", "tasks", "submissions", "tasks for each", "time")
	var faults []error
	for _, p := range pools {
		if err := w.Flush(); err != nil {
			return fmt.Errorf("cannot write the table: %w", err)
		}
		r, err := measure(ctx, cfg, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-10s %12s %12s %14.1f %12s\n", p.name, count(r.tasks), count(int(r.submissions)),
			float64(r.tasks)/float64(max(r.submissions, 1)), r.took.Round(10*time.Microsecond))
		for _, f := range r.faults {
			faults = append(faults, fmt.Errorf("%s: %s", p.name, f))
		}
	}
	if len(faults) == 0 {
		fmt.Fprint(w, "\nEvery worker saw its tasks in order, one at a time.\n")
	}
	if err := w.Flush(); err != nil {
		faults = append(faults, fmt.Errorf("cannot write the table: %w", err))
	}
	return errors.Join(faults...)
}

// count is n with a comma before each three digits.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
