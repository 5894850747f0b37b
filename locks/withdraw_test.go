package locks_test

import (
	"context"
	"errors"
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

func TestACancelledWaiterWithdrawsItsRequest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		begin := time.Now()
		err := w.m.With(ctx, "k", nothing)
		assert.Equal(t, time.Minute, time.Since(begin))
		var refused *locks.NotGrantedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedCancelled, refused.Reason)
		assert.Equal(t, "other", refused.Holder)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, locks.ErrNotGranted)
		require.NotErrorIs(t, err, locks.ErrUnknownOutcome)
		r, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Zero(t, r.Waiters)
		free()
		synctest.Wait()
		w.mustFree("k")
	})
}

func TestAWaiterWhoseTimeIsOverSaysSo(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		begin := time.Now()
		_, err := w.m.Acquire(t.Context(), "k", locks.Wait(7*time.Second))
		assert.Equal(t, 7*time.Second, time.Since(begin))
		var refused *locks.NotGrantedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedTimedOut, refused.Reason)
		assert.NoError(t, refused.Err)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "that is for the end of ctx")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.m.Acquire(ctx, "k")
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedTimedOut, refused.Reason)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		_, err = w.m.Acquire(t.Context(), "k", locks.NoWait())
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedNoWait, refused.Reason)
		assert.Equal(t, "other", refused.Holder)
		free()
	})
}

func TestTheEndOfCtxWhileWaitingIsAnEchoForAScope(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		why := errors.New("why")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			synctest.Wait()
			return why
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		assert.Equal(t, []error{why}, list.Errors, "nothing else has gone wrong")
		assert.ErrorAs(t, list.Stopped[0], new(*locks.NotGrantedError))
		free()
	})
}

func TestTheHeadOfTheQueueThatGivesUpWakesTheNext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		readers := held(t, w, "k", locks.Read())
		begin := time.Now()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { // a writer, first in the queue, gives up after 2.5 s
				err := w.m.WithWrite(ctx, "k", nothing, locks.Wait(2500*time.Millisecond))
				assert.ErrorIs(t, err, locks.ErrNotGranted)
				return nil
			})
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { // a reader of another process waits behind it
				return w.manager(lockstest.NewFaulty(w.store.Store)).WithRead(ctx, "k", nothing)
			})
			return nil
		}))
		assert.Equal(t, 2500*time.Millisecond, time.Since(begin))
		readers()
	})
}

func TestAGrantForAWaiterThatHasGoneIsGivenBackAndTheNextIsHinted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var slow atomic.Bool
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && slow.Load() {
				f.After = 500 * time.Millisecond
			}
			return f
		})
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
			async.Go(scope, func(context.Context) error {
				err := w.m.With(ctx, "k", nothing)
				assert.ErrorIs(t, err, locks.ErrNotGranted)
				assert.NotErrorIs(t, err, locks.ErrUnknownOutcome)
				return nil
			})
			synctest.Wait()
			var granted atomic.Pointer[time.Time]
			async.Go(scope, func(ctx context.Context) error {
				return w.other.With(ctx, "k", func(context.Context) error { granted.Store(new(time.Now())); return nil })
			})
			synctest.Wait()
			slow.Store(true)
			free()
			synctest.Wait()
			cancel() // the grant is on its way
			begin := time.Now()
			time.Sleep(time.Second)
			assert.Equal(t, 500*time.Millisecond, granted.Load().Sub(begin))
			return nil
		}))
	})
}

func TestALeaverDoesNotWaitForeverForAQuestionOnItsWay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		late := make(chan struct{})
		var stuck atomic.Bool
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && stuck.Load() {
				f.Late = late
			}
			return f
		})
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
			async.Go(scope, func(context.Context) error {
				err := w.m.With(ctx, "k", nothing)
				assert.ErrorIs(t, err, locks.ErrNotGranted)
				assert.ErrorIs(t, err, locks.ErrUnknownOutcome)
				return nil
			})
			time.Sleep(100 * time.Millisecond)
			stuck.Store(true)
			free()
			synctest.Wait()
			begin := time.Now()
			cancel()
			time.Sleep(2 * time.Second)
			assert.Empty(t, w.events.of(locks.EventGranted))
			assert.Len(t, w.events.of(locks.EventNotGranted), 1)
			assert.LessOrEqual(t, time.Since(begin), 2*time.Second)
			close(late)
			synctest.Wait()
			w.mustFree("k") // it was granted, to nobody, and given back
			return nil
		}))
	})
}

func TestACtxThatIsDoneAsksForNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.m.With(ctx, "k", nothing), context.Canceled)
		assert.Empty(t, w.store.Calls(lockstest.Acquire))
	})
}

func TestALockThatIsGrantedWhenItsCallerHasGoneIsGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		fail(w, lockstest.Acquire, lockstest.Fault{After: 100 * time.Millisecond, Do: cancel})
		err := w.m.With(ctx, "k", func(context.Context) error { panic("called") })
		require.ErrorIs(t, err, locks.ErrNotGranted)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, locks.ErrUnknownOutcome)
		w.mustFree("k")
	})
}
