//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/audit"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
)

// A world is a store, the processes that use it, and what is done to them.
type world struct {
	name  string
	seed  uint64
	dir   string // removed in the end
	fleet *fleet
	// open opens the store for the auditor, past all that mistreats it.
	open func(ctx context.Context) (taskqueue.Store, error)
	// advance puts the clock of the store forward, from that of the machine.
	advance func(d time.Duration) error
	// left returns what is in the store when all tasks were deleted.
	left func(ctx context.Context) ([]string, error)
	// mend ends what mistreats the store.
	mend  func(ctx context.Context) error
	close func()
	decks [][]fault
	trace io.Writer // nil: nobody is told when which fault was injected

	mu       sync.Mutex
	injected map[string]int
	order    []string // names of faults
	missing  []string // faults that cannot be injected here, and why
	losses   []audit.Span
}

// A fault is something that is done to a world. inject says whether it has happened;
// an error ends the run.
type fault struct {
	name   string
	inject func(ctx context.Context, rng *rand.Rand) (bool, error)
}

func newWorld(name string, seed uint64, dir string) (*world, error) {
	w := &world{name: name, seed: seed, dir: filepath.Join(dir, name), injected: map[string]int{}}
	return w, os.MkdirAll(filepath.Join(w.dir, "journals"), 0o700)
}

func (w *world) journals() string { return filepath.Join(w.dir, "journals") }

// ms draws a number of milliseconds.
func ms(rng *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+rng.IntN(to-from)) * time.Millisecond
}

// deal injects the faults of a deck again and again, each time in another order,
// until over is closed. Each of them is injected at least once, however long that takes.
func (w *world) deal(ctx context.Context, rng *rand.Rand, deck []fault, over <-chan struct{}) error {
	w.mu.Lock()
	for _, f := range deck {
		w.order = append(w.order, f.name)
	}
	w.mu.Unlock()
	for round := 0; ; round++ {
		all := true
		for _, i := range rng.Perm(len(deck)) {
			select {
			case <-over:
				if round > 0 && w.count(deck[i].name) > 0 {
					continue
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			default:
			}
			rest(ctx, ms(rng, 20, 250))
			from := time.Now()
			done, err := deck[i].inject(ctx, rng)
			if w.trace != nil {
				_, _ = fmt.Fprintf(w.trace, "%s %s %v %v\n", from.Format("15:04:05.000"), deck[i].name, done, time.Since(from))
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", w.name, deck[i].name, err)
			}
			if done {
				w.mu.Lock()
				w.injected[deck[i].name]++
				w.mu.Unlock()
			}
			all = all && w.count(deck[i].name) > 0
		}
		select {
		case <-over:
			if all || round > 20 {
				return nil
			}
		default:
		}
	}
}

func (w *world) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.injected[name]
}

func (w *world) loss(from, to int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses = append(w.losses, audit.Span{From: from, To: to})
}

// run has the world live for d, mends it, waits until all tasks have ended, and has
// the auditor look at it.
func (w *world) run(ctx context.Context, d time.Duration) (r audit.Report, err error) {
	s, err := w.open(ctx)
	if err != nil {
		return r, err
	}
	if err := errors.Join(s.SetLimit(ctx, queueName, plan.Limit), s.Close()); err != nil {
		return r, err
	}
	if err := w.fleet.fill(); err != nil {
		return r, err
	}
	over := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	errs := make(chan error)
	for i, deck := range w.decks {
		go func() { errs <- w.deal(ctx, rand.New(rand.NewPCG(w.seed, uint64(i))), deck, over) }()
	}
	for range w.decks {
		if e := <-errs; e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		return r, err
	}
	return w.settle(ctx)
}

// faultsOfProcesses are those that the processes of every world have.
func (w *world) faultsOfProcesses() []fault {
	f := w.fleet
	hold := func(ctx context.Context, c *child, d time.Duration) bool {
		if !f.signal(c, syscall.SIGSTOP) {
			return false
		}
		rest(ctx, d)
		return f.signal(c, syscall.SIGCONT)
	}
	return []fault{
		{"kill -9 of a worker", func(_ context.Context, rng *rand.Rand) (bool, error) {
			return f.signal(f.pick(rng, "worker"), syscall.SIGKILL), nil
		}},
		{"a worker suspended", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			return hold(ctx, f.pick(rng, "worker"), ms(rng, 50, 700)), nil
		}},
		{"a worker suspended for longer than its lease", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			return hold(ctx, f.pick(rng, "worker"), plan.Lease+ms(rng, 100, 1500)), nil
		}},
		{"a worker told to stop", func(_ context.Context, rng *rand.Rand) (bool, error) {
			c := f.pick(rng, "worker")
			if !f.signal(c, syscall.SIGTERM) {
				return false, nil
			}
			return true, f.refill()
		}},
		{"kill -9 of a producer", func(_ context.Context, rng *rand.Rand) (bool, error) {
			return f.signal(f.pick(rng, "producer"), syscall.SIGKILL), nil
		}},
		{"the clock of a client put forward or back", func(_ context.Context, rng *rand.Rand) (bool, error) {
			return f.setClock(f.pick(rng, []string{"worker", "producer"}[rng.IntN(2)]), rng.IntN(1201)-600), nil
		}},
	}
}
