package batch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
)

// A ledger is the model: what each producer was told of each of its items, and
// what has become of it.
type ledger struct {
	mu        sync.Mutex
	accepted  map[int]bool
	refused   map[int]bool
	delivered []int
	failures  int
}

func (l *ledger) told(err error, items ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range items {
		if err == nil {
			l.accepted[i] = true
		} else {
			l.refused[i] = true
		}
	}
}

func (l *ledger) flush(fails func() bool) func(context.Context, []int) error {
	return func(_ context.Context, items []int) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if fails() {
			l.failures++
			return errDisk
		}
		l.delivered = append(l.delivered, items...)
		return nil
	}
}

// Goroutines, tasks of the scope and others, add while the scope ends: well, by
// a failing flush, or by a cancellation. Every item is delivered or lost, once, if
// it was accepted, and neither if it was refused; and each producer's items come
// in order.
func TestAddRacingTheEndIsDeliveredOrRefusedAndNeverBoth(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 1))
		raceTheEnd(t, r, round)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

const perProducer = 1000

func raceTheEnd(t *testing.T, r *rand.Rand, round int) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	defer cancel(nil)
	l := &ledger{accepted: map[int]bool{}, refused: map[int]bool{}}
	fails := func() bool { return r.IntN(20) == 0 } // called with the ledger locked
	if round%2 == 0 {
		fails = func() bool { return false }
	}
	var opts []batch.Option
	if round%3 > 0 {
		opts = append(opts, batch.Items(1+r.IntN(10)))
	}
	if round%5 > 1 {
		opts = append(opts, batch.Capacity(3+r.IntN(20)))
	}
	steps := r.IntN(60)
	ends := r.IntN(3)

	var outside sync.WaitGroup
	err := async.Scope(ctx, func(ctx context.Context) error {
		b := batch.New(ctx, l.flush(fails), opts...)
		produce := func(ctx context.Context, p, most int) {
			for i := 0; i+2 < most; i += 3 {
				items := []int{p*perProducer + i, p*perProducer + i + 1, p*perProducer + i + 2}
				err := b.Add(ctx, items...)
				l.told(err, items...)
				if errors.Is(err, async.ErrScopeEnded) {
					return
				}
				if i%30 == 0 {
					_ = b.Flush(ctx)
				}
			}
		}
		for p := range 2 {
			outside.Go(func() { produce(context.Background(), p, perProducer) })
			async.Go(ctx, func(ctx context.Context) error {
				produce(ctx, p+2, 3*steps)
				return nil
			})
		}
		for range steps {
			_ = b.Flush(ctx)
		}
		switch ends {
		case 0:
			return errStop
		case 1:
			cancel(errStop)
		}
		return nil
	})
	outside.Wait()

	var lost *batch.LostError[int]
	if errors.As(err, &lost) {
		require.Positive(t, l.failures)
		l.delivered = append(l.delivered, lost.Items...)
	}
	last := map[int]int{}
	for _, i := range l.delivered {
		p := i / perProducer
		before, any := last[p]
		require.True(t, !any || before < i, "%d after %d", i, before)
		last[p] = i
		require.True(t, l.accepted[i], "%d was delivered, and its Add has not said so", i)
	}
	require.Len(t, l.delivered, len(l.accepted), "each that was accepted")
	for i := range l.refused {
		require.False(t, slices.Contains(l.delivered, i), "%d was refused and delivered", i)
	}
	assert.Zero(t, len(l.accepted)%3, "all of an Add, or none")
}
