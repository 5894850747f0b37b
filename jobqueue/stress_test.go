package jobqueue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/ambit-go/ambit/jobqueue"
)

// Producers and consumers that fail, panic, exit, are cancelled while they wait
// or while they hold: no job is lost, none is in two hands at once, and each is
// done exactly once in the end.
func TestNothingIsLostAndNothingIsInTwoHands(t *testing.T) {
	const producers, consumers, each = 4, 6, 6_000 / raceFactor
	q := jobqueue.New[int]()
	var held, done [producers * each]atomic.Int32
	var left atomic.Int64
	left.Store(producers * each)

	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				assert.True(t, q.Add(i*producers+p))
			}
		})
	}
	root := bridge.NewRoot(t.Context(), func(error) {}, func(string) {}) // a Goexit has nobody to be told to
	consume := func(r *rand.Rand) {
		defer func() { _ = recover() }()
		ctx, cancel := context.WithCancel(root)
		defer cancel()
		if r.IntN(8) == 0 {
			go cancel() // while it waits, holds, or has ended
		}
		// Who settles a job lets go of it first: another may have it before
		// Ack returns.
		var mine []int
		letGo := func(jobs []int) {
			for _, job := range jobs {
				held[job].Add(-1)
			}
		}
		_ = async.Scope(ctx, func(ctx context.Context) error {
			jobs, err := q.Take(ctx, 1+r.IntN(4))
			if err != nil {
				return err
			}
			for _, job := range jobs {
				assert.EqualValues(t, 1, held[job].Add(1), "job %d is in two hands", job)
				assert.Zero(t, done[job].Load(), "job %d was done before", job)
			}
			mine = jobs
			how := r.IntN(8)
			if how == 4 {
				letGo(mine)
				q.Nack(ctx, errBoom, mine...)
				return nil
			}
			// Ack is what makes a job done, whatever follows; it says
			// nothing, but the job cannot come again.
			if how > 4 {
				for _, job := range mine {
					done[job].Add(1)
				}
				letGo(mine)
				q.Ack(ctx, mine...)
				left.Add(-int64(len(mine)))
				if left.Load() == 0 {
					q.Close()
				}
			} else {
				letGo(mine)
			}
			switch how % 4 {
			case 0:
				return errBoom
			case 1:
				panic("boom")
			case 2:
				runtime.Goexit()
			}
			cancel()
			return nil
		})
	}
	for c := range consumers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 4))
			for left.Load() > 0 {
				gone := make(chan struct{}) // of a goroutine, for Goexit
				go func() { defer close(gone); consume(r) }()
				<-gone
			}
		})
	}
	wg.Wait()

	for job := range done {
		require.EqualValues(t, 1, done[job].Load(), "job %d", job)
	}
	s := q.Stats()
	assert.EqualValues(t, producers*each, s.Added)
	assert.EqualValues(t, producers*each, s.Done)
	assert.Equal(t, s.Taken, s.Done+s.Returned)
	assert.Empty(t, q.Queued())
	assert.Empty(t, q.InProgress())
}

// Consume does each job once although its function fails now and then.
func TestConsumersDoEachJobOnceInTheEnd(t *testing.T) {
	const producers, each = 4, 10_000 / raceFactor
	q := jobqueue.New[int]()
	var done [producers * each]atomic.Int32
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				q.Add(i*producers + p)
			}
		})
	}
	wg.Go(func() {
		assert.NoError(t, q.Consume(t.Context(), 8, 3, func(_ context.Context, jobs []int) error {
			if rand.IntN(10) == 0 {
				return errBoom
			}
			for _, job := range jobs {
				done[job].Add(1)
			}
			return nil
		}))
	})
	for q.Stats().Added < producers*each {
		runtime.Gosched()
	}
	require.NoError(t, q.Drain(t.Context()))
	wg.Wait()
	for job := range done {
		require.EqualValues(t, 1, done[job].Load(), "job %d", job)
	}
}

// A waiter is cancelled in the instant it is served, and another waits behind
// it: one of the two has the job, and never is it in the queue while somebody
// waits. A lost wake-up hangs this test.
func TestNoWakeUpIsLost(t *testing.T) {
	const rounds = 20_000 / raceFactor
	q := jobqueue.New[int]()
	first := 0
	for i := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var got [2]int
		wait := func(j int, ctx context.Context) {
			wg.Go(func() {
				err := q.Do(ctx, 1, func(_ context.Context, jobs []int) error {
					got[j]++
					return nil
				})
				if j == 1 && err != nil {
					assert.ErrorIs(t, err, jobqueue.ErrClosed)
				}
			})
		}
		wait(0, ctx)
		wait(1, t.Context())
		if i%2 == 0 {
			runtime.Gosched()
		}
		start := make(chan struct{})
		wg.Go(func() { <-start; cancel() })
		wg.Go(func() { <-start; q.Add(i) })
		close(start)
		// The second one waits until the first has done the job; then it is
		// to have another.
		go func() {
			for q.Stats().Done == uint64(2*i) {
				runtime.Gosched()
			}
			q.Add(-1 - i)
		}()
		wg.Wait()
		cancel()
		first += min(1, got[0])
		// Whoever is left takes what is left.
		for q.Stats().Done < uint64(2*i+2) {
			require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []int) error { return nil }))
		}
	}
	t.Logf("the first had a job in %d of %d rounds", first, rounds)
	assert.Empty(t, q.Queued())
}

// Close and Drain come while others wait, take and add: everybody is told, and
// what was added is done or still there.
func TestCloseAndDrainAmongEverybodyElse(t *testing.T) {
	for i := range 2000 / raceFactor {
		q := jobqueue.New[int]()
		var wg sync.WaitGroup
		var added, done atomic.Int64
		for p := range 3 {
			wg.Go(func() {
				for j := range 20 {
					if q.Add(j*3 + p) {
						added.Add(1)
					}
				}
			})
			wg.Go(func() {
				assert.NoError(t, q.Consume(t.Context(), 2, 2, func(_ context.Context, jobs []int) error {
					if rand.IntN(4) == 0 {
						return errBoom
					}
					done.Add(int64(len(jobs)))
					return nil
				}))
			})
		}
		var drained [2]error
		for d := range drained {
			wg.Go(func() { drained[d] = q.Drain(t.Context()) })
		}
		if i%2 == 0 {
			wg.Go(q.Close)
		}
		wg.Wait()
		left := len(q.Queued())
		require.Equal(t, int(added.Load()), int(done.Load())+left)
		require.Empty(t, q.InProgress())
		for _, err := range drained {
			if left == 0 {
				require.NoError(t, err)
			} else {
				require.True(t, i%2 == 0 && errors.Is(err, jobqueue.ErrClosed), "%d left: %v", left, err)
			}
		}
	}
}

// A Take that was cancelled and is served before it knows gives the job on though
// its scope lives: otherwise nobody would know of the job until that ends.
func TestWhoIsCancelledWhenServedGivesOn(t *testing.T) {
	const rounds = 20_000 / raceFactor
	q := jobqueue.New[int]()
	require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
		for i := range rounds {
			ctx, cancel := context.WithCancel(scope)
			var wg sync.WaitGroup
			wg.Go(func() { runtime.Gosched(); cancel(); q.Add(i) })
			jobs, err := q.Take(ctx, 1)
			wg.Wait()
			if err != nil {
				require.Empty(t, q.InProgress())
				require.Equal(t, 0, q.Attempt(i), "nobody has seen it")
				jobs, err = q.Take(scope, 1)
			}
			require.NoError(t, err)
			require.Equal(t, []int{i}, jobs)
			q.Ack(scope, jobs...)
		}
		return nil
	}))
}
