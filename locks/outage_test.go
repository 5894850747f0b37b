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

func TestAWaitingProcessSurvivesAShortOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var down atomic.Bool
		w.store.Inject(func(lockstest.Call) (f lockstest.Fault) {
			if down.Load() {
				f.Fail = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			time.Sleep(5 * time.Second)
			down.Store(true)
			time.Sleep(8 * time.Second)
			down.Store(false)
			time.Sleep(5 * time.Second)
			free()
			return nil
		}))
	})
}

func TestAnOutageIsNotContention(t *testing.T) {
	for name, fault := range map[string]lockstest.Fault{"fails": {Fail: lockstest.ErrFault}, "silent": {Silent: true}, "answers lost": {Lose: lockstest.ErrFault}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.store.Inject(func(lockstest.Call) lockstest.Fault { return fault })
				for _, option := range []locks.LockOption{locks.NoWait(), locks.Wait(2 * time.Second), locks.Wait(time.Hour)} {
					begin := time.Now()
					_, err := w.m.Acquire(t.Context(), "k", option)
					require.ErrorIs(t, err, locks.ErrUnavailable)
					require.ErrorIs(t, err, locks.ErrUnknownOutcome, "it could not be withdrawn")
					require.NotErrorIs(t, err, locks.ErrNotGranted)
					assert.LessOrEqual(t, time.Since(begin), 20*time.Second)
				}
			})
		})
	}
}

func TestALockThatCouldNotBeWithdrawnEndsWithItsLease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(lockstest.Call) lockstest.Fault { return lockstest.Fault{Lose: lockstest.ErrFault} })
		_, err := w.m.Acquire(t.Context(), "k", locks.NoWait())
		require.ErrorIs(t, err, locks.ErrUnknownOutcome)
		time.Sleep(leaseTime)
		w.mustFree("k")
	})
}

func TestAGrantWhoseAnswerIsLostIsFoundByItsID(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.Lose = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", func(context.Context) error {
			calls := w.store.Calls(lockstest.Acquire)
			assert.Equal(t, calls[0].Requests[0].ID, calls[1].Requests[0].ID)
			return nil
		}))
		w.mustFree("k")
	})
}

func TestAGrantThatIsAnsweredAfterItsOwnEndIsGivenBackAndAskedAnew(t *testing.T) {
	for _, options := range [][]locks.LockOption{nil, {locks.NoWait()}} {
		in(t, func(t *testing.T, w *world) {
			const lease = time.Second
			deaf := make(chan struct{})
			w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
				if c.Step == lockstest.Acquire && c.Number == 1 {
					// The answer stays on its way although nobody waits for it in the client of the database.
					f.Late = deaf
				}
				return f
			})
			time.AfterFunc(trusted(lease), func() { close(deaf) })
			require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
				calls := w.store.Calls(lockstest.Acquire)
				assert.Greater(t, len(calls), 1)
				last := calls[len(calls)-1]
				assert.NotEqual(t, calls[0].Requests[0].ID, last.Requests[0].ID)
				assert.NoError(t, locks.From(ctx).Err())
				return nil
			}, append(options, locks.LeaseFor(lease))...))
			synctest.Wait()
			w.mustFree("k")
		})
	}
}
