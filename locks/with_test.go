package locks_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func nothing(context.Context) error { return nil }

func TestWithHoldsTheLockWhileTheBodyRunsAndGivesItBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			assert.False(t, w.free("k"))
			h := locks.From(ctx)
			assert.NoError(t, h.Err())
			assert.Equal(t, "k", h.Key())
			assert.Equal(t, "default", h.Tenant())
			assert.Positive(t, h.Token())
			assert.Zero(t, h.Slot())
			return nil
		}))
		w.mustFree("k")
		assert.Len(t, w.store.Calls(lockstest.Acquire), 1, "one round trip each")
		assert.Len(t, w.store.Calls(lockstest.Release), 1)
	})
}

func TestABodyOfAnyLengthKeepsTheLock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			for range 100 {
				require.NoError(t, async.Sleep(ctx, 10*time.Second))
				assert.False(t, w.free("k"))
				assert.NoError(t, locks.From(ctx).Err())
			}
			return nil
		}))
		w.mustFree("k")
	})
}

func TestTheLockIsGivenBackWhenAllThatTheBodyStartedHasEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ended := false
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				defer func() { ended = true }()
				return async.Sleep(ctx, time.Minute)
			})
			async.Go(ctx, func(ctx context.Context) error {
				require.NoError(t, async.Sleep(ctx, 30*time.Second))
				assert.False(t, w.free("k"))
				return nil
			})
			return nil
		}))
		assert.True(t, ended)
		w.mustFree("k")
	})
}

func TestWithReturnsWhatTheBodyReturns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mine := errors.New("mine")
		assert.Same(t, mine, w.m.With(t.Context(), "k", func(context.Context) error { return mine }))
		w.mustFree("k")
	})
}

func TestAPanicGoesOnWhenTheLockWasGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		value := errors.New("boom")
		func() {
			defer func() {
				assert.Same(t, value, recover())
				w.mustFree("k")
			}()
			_ = w.m.With(t.Context(), "k", func(context.Context) error { panic(value) })
		}()
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = w.m.With(t.Context(), "k", func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-exited
		w.mustFree("k")
	})
}

func TestALostLockIsAnErrorAlthoughTheBodyReturnsNil(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var cause error
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			require.NoError(t, steal(w, ctx))
			<-ctx.Done()
			cause = context.Cause(ctx)
			assert.Equal(t, cause, locks.From(ctx).Err())
			return nil
		})
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostStolen, lost.Reason)
		assert.Equal(t, "k", lost.Key)
		assert.Same(t, lost, cause)
	})
}

func TestALostLockIsToldBesideWhatTheBodyReturns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mine := errors.New("mine")
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			require.NoError(t, steal(w, ctx))
			<-ctx.Done()
			return mine
		})
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		require.ErrorIs(t, err, mine)

		err = w.m.With(t.Context(), "k", func(ctx context.Context) error {
			require.NoError(t, steal(w, ctx))
			<-ctx.Done()
			return ctx.Err() // says no more than that it was cancelled
		})
		require.ErrorAs(t, err, &lost)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// steal takes the lock of ctx away, as somebody with access to the store can.
func steal(w *world, ctx context.Context) error {
	h := locks.From(ctx)
	return w.other.ReleaseVersion(ctx, h.Key(), h.Version())
}

func TestWhenTheParentIsCancelledTheLeaseIsRenewedUntilTheBodyHasReturned(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		err := w.m.With(ctx, "k", func(ctx context.Context) error {
			cancel(why)
			assert.Equal(t, why, context.Cause(ctx))
			for range 20 { // it has much to clean up
				time.Sleep(5 * time.Second)
				assert.False(t, w.free("k"))
			}
			assert.NoError(t, locks.From(ctx).Err())
			return ctx.Err()
		})
		require.ErrorIs(t, err, why)
		assert.NotErrorIs(t, err, locks.ErrNotReleased)
		w.mustFree("k") // although ctx is cancelled
	})
}

func TestALossAfterTheLastChildHasEndedIsNoLoss(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Release {
				f.Silent = true
			}
			return f
		})
		err := w.m.With(t.Context(), "k", nothing)
		var lost *locks.LostError
		assert.False(t, errors.As(err, &lost))
		var released *locks.ReleaseError
		require.ErrorAs(t, err, &released)
		require.ErrorIs(t, err, locks.ErrNotReleased)
		require.ErrorIs(t, err, locks.ErrUnavailable)
		require.ErrorIs(t, err, locks.ErrUnknownOutcome)
	})
}

func TestABodyThatReturnsBeforeTheTimerFiresIsToldOfTheLoss(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			w.m.Suspend(time.Hour) // and no timer has fired
			return nil
		})
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostExpired, lost.Reason)
	})
}

func TestAReleaseIsBoundedByWhatRemains(t *testing.T) {
	for _, lease := range []time.Duration{500 * time.Millisecond, 3 * time.Second, time.Minute} {
		in(t, func(t *testing.T, w *world) {
			w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
				if c.Step == lockstest.Release {
					f.Silent = true
				}
				return f
			})
			begin := time.Now()
			err := w.m.With(t.Context(), "k", nothing, locks.LeaseFor(lease))
			require.ErrorIs(t, err, locks.ErrNotReleased)
			assert.LessOrEqual(t, time.Since(begin), min(lease, 5*time.Second))
		})
	}
}

func TestAReleaseIsTriedAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Release && c.Number <= 2 {
				f.Fail = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
		w.mustFree("k")

		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Release && c.Number == 4 {
				f.Lose = lockstest.ErrFault // it was done
			}
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
	})
}

func TestARenewalOnItsWayIsWaitedForBeforeTheRelease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begun := make(chan struct{})
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Renew {
				f.Before = time.Second
				f.Do = func() { close(begun) }
			}
			return f
		})
		var sent time.Time
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			<-begun
			sent = time.Now()
			return nil
		}))
		release := w.store.Calls(lockstest.Release)[0]
		assert.Equal(t, time.Second, release.At.Sub(sent))
		assert.Len(t, w.store.Calls(lockstest.Renew), 1)
		synctest.Wait()
		time.Sleep(time.Minute)
		assert.Len(t, w.store.Calls(lockstest.Renew), 1, "no renewal after the release")
	})
}

func TestTryWithSaysWhetherItRan(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ran, err := w.m.TryWith(t.Context(), "k", func(ctx context.Context) error {
			ran, err := w.other.TryWith(t.Context(), "k", nothing)
			assert.False(t, ran)
			assert.NoError(t, err)
			return nil
		})
		assert.True(t, ran)
		require.NoError(t, err)
		mine := errors.New("mine")
		ran, err = w.m.TryWith(t.Context(), "k", func(context.Context) error { return mine })
		assert.True(t, ran)
		assert.Same(t, mine, err)
	})
}
