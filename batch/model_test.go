package batch_test

import (
	"context"
	"errors"
	"maps"
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
	unknown   map[int]bool // a Do was told that they were under way
	flushed   map[int]int  // how often each was given to flush
	delivered []int
	withdrawn []int
	failures  int
}

func (l *ledger) told(err error, items ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range items {
		switch {
		case err == nil:
			l.accepted[i] = true
		case errors.Is(err, batch.ErrUnderWay):
			l.unknown[i] = true
		default:
			l.refused[i] = true
		}
	}
}

func (l *ledger) flush(fails func() bool) func(context.Context, []int) error {
	return func(_ context.Context, items []int) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, i := range items {
			l.flushed[i]++
		}
		if fails() {
			l.failures++
			return errDisk
		}
		l.delivered = append(l.delivered, items...)
		return nil
	}
}

// Goroutines, tasks of the scope and others, add and do while the scope ends: well, by
// a failing flush, or by a cancellation. Every item is delivered or lost, once, if
// it was accepted, and neither if it was refused; and each producer's items come
// in order. An item of Do is flushed at most once, and not at all if it was withdrawn.
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

const (
	perProducer = 1000
	firstOfDo   = 4 // producers from here on call Do
)

// commitAndLeave is a producer that calls Do, and does not wait for each seventh answer.
func commitAndLeave(ctx context.Context, b *batch.Batch[int], l *ledger, p, most int) {
	var leaving sync.WaitGroup
	defer leaving.Wait()
	for i := range most {
		item := p*perProducer + i
		short, cancel := context.WithCancelCause(ctx)
		if i%7 == 0 {
			leaving.Go(func() { cancel(errLeave) })
		}
		err := b.Do(short, item)
		l.told(err, item)
		if err == errLeave || err == errStop {
			l.withdraw(item)
		}
		cancel(nil)
		if errors.Is(err, async.ErrScopeEnded) {
			return
		}
	}
}

var errLeave = errors.New("leave")

// withdraw notes that Do has returned the bare cause: no flush has item, ever.
func (l *ledger) withdraw(item int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withdrawn = append(l.withdrawn, item)
}

func raceTheEnd(t *testing.T, r *rand.Rand, round int) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	defer cancel(nil)
	l := &ledger{accepted: map[int]bool{}, refused: map[int]bool{}, unknown: map[int]bool{}, flushed: map[int]int{}}
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
			outside.Go(func() { commitAndLeave(context.Background(), b, l, p+firstOfDo, perProducer) })
			async.Go(ctx, func(ctx context.Context) error {
				commitAndLeave(ctx, b, l, p+firstOfDo+2, steps)
				return nil
			})
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
		require.True(t, l.accepted[i] || l.unknown[i], "%d was delivered, and its Add or Do has not said so", i)
	}
	for i := range l.unknown {
		if !slices.Contains(l.delivered, i) {
			delete(l.unknown, i)
		}
	}
	require.Len(t, l.delivered, len(l.accepted)+len(l.unknown), "each that was accepted")
	for i, times := range l.flushed {
		require.True(t, i/perProducer < firstOfDo || times == 1, "%d of Do was flushed %d times", i, times)
	}
	for _, i := range l.withdrawn {
		require.Zero(t, l.flushed[i], "%d was withdrawn and flushed", i)
	}
	for i := range l.refused {
		require.False(t, slices.Contains(l.delivered, i), "%d was refused and delivered", i)
	}
	maps.DeleteFunc(l.accepted, func(i int, _ bool) bool { return i/perProducer >= firstOfDo })
	assert.Zero(t, len(l.accepted)%3, "all of an Add, or none")
}
