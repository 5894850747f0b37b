package locks_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestAHintLeadsToAnAttemptAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			time.Sleep(leaseTime)
			begin := time.Now()
			free()
			synctest.Wait()
			assert.Zero(t, time.Since(begin))
			assert.Len(t, w.events.of(locks.EventGranted), 1)
			return nil
		}))
	})
}

func TestALostHintCostsOnePoll(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Mute(true)
		free := held(t, w, "k")
		var granted atomic.Pointer[time.Time]
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return w.m.With(ctx, "k", func(context.Context) error { granted.Store(new(time.Now())); return nil })
			})
			time.Sleep(leaseTime)
			begin := time.Now()
			free()
			time.Sleep(5 * time.Second)
			assert.LessOrEqual(t, granted.Load().Sub(begin), 1200*time.Millisecond)
			return nil
		}))
	})
}

func TestTheEndOfALeaseIsWaitedForToThePoint(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Mute(true)
		begin := time.Now()
		_, err := w.other.Acquire(t.Context(), "k", locks.NoRenew()) // its process dies
		require.NoError(t, err)
		time.Sleep(333 * time.Millisecond)
		require.NoError(t, w.m.With(t.Context(), "k", func(context.Context) error {
			assert.InDelta(t, leaseTime+5*time.Millisecond, time.Since(begin), float64(time.Microsecond))
			return nil
		}))
	})
	in(t, func(t *testing.T, w *world) { // only by those who may be granted it
		begin := time.Now()
		_, err := w.other.Acquire(t.Context(), "k", locks.LeaseFor(2500*time.Millisecond), locks.NoRenew())
		require.NoError(t, err)
		third := w.manager(lockstest.NewFaulty(w.store.Store))
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return third.With(ctx, "k", func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
			})
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			synctest.Wait()
			w.store.Forget()
			time.Sleep(2600 * time.Millisecond)
			for _, c := range w.store.Calls(lockstest.Acquire) {
				assert.Greater(t, c.At.Sub(begin.Add(2505*time.Millisecond)).Abs(), time.Microsecond)
			}
			assert.LessOrEqual(t, len(w.store.Calls(lockstest.Acquire)), 3)
			return nil
		}))
	})
}

func TestAProcessAsksOnceASecondForAllWhoWaitForAKey(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 100 {
				async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			}
			synctest.Wait()
			w.store.Forget()
			time.Sleep(time.Minute)
			calls := w.store.Calls(lockstest.Acquire)
			assert.LessOrEqual(t, len(calls), 60)
			assert.GreaterOrEqual(t, len(calls), 45)
			for _, c := range calls {
				assert.Len(t, c.Requests, 100)
			}
			r, err := w.other.Get(ctx, "k")
			require.NoError(t, err)
			assert.Equal(t, 100, r.Waiters, "each has a ticket")
			free()
			return nil
		}))
	})
}

func TestARequestIsRegisteredBeforeItIsTriedAndTriedBeforeItSleeps(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// The lock is released just after the first question, before anybody listens.
		free := held(t, w, "k")
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.After = time.Millisecond
				time.AfterFunc(time.Microsecond, free)
			}
			return f
		})
		begin := time.Now()
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
		assert.Equal(t, time.Millisecond, time.Since(begin), "no wake-up is lost")
	})
}

func TestAHintThatComesBeforeAWaiterJoinsIsNotLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// Two callers ask at the same time, before there is a waitlist. The answer to the first
		// is late: the lock is released, and hinted, before that caller waits.
		free := held(t, w, "k")
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.After = 100 * time.Millisecond
			}
			return f
		})
		begin := time.Now()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			time.Sleep(50 * time.Millisecond)
			free()
			return nil
		}))
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
	})
}

func TestACallThatWaitsForAllTheTimeThereIsAsksOnceForALockThatIsFree(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", nothing, locks.Wait(1<<63-1)))
		require.Empty(t, w.events.of(locks.EventWaiting))
	})
}
