package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/lease"
)

func TestRenewalsGoOnFromTheEndOfTheBeliefToTheRelease(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		on, stop := l.Context(ctx)
		defer stop()
		require.NoError(t, l.End())
		is(t, context.Cause(on), lease.ErrEnded)
		is(t, l.Err(), lease.ErrEnded)
		assert.Zero(t, l.Remaining())
		w.answers(down)
		time.Sleep(2 * length) // beyond the end of the term, for what is to be settled is to be settled
		w.answers(nil)
		time.Sleep(2 * length)
		n := len(w.made())
		assert.InDelta(t, 27, n, 3)
		assert.Greater(t, l.Term().End(), w.k.Now())
		require.NoError(t, l.End(), "the first call counts")
		require.NoError(t, l.Release(ctx))
		require.NoError(t, l.Release(ctx))
		time.Sleep(length)
		assert.Len(t, w.made(), n)
		require.NoError(t, l.End())
	})
}

func TestEndSaysWhetherTheHolderHasBelievedUntilThen(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		w.clock.Suspend(length)
		is(t, l.End(), lease.ErrOver)
		is(t, l.End(), lease.ErrOver)
		require.NoError(t, l.Release(ctx))
	})
}

func TestALeaseThatIsLostAfterItsEndIsNotRenewed(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length, lease.OnLoss(func(error) { t.Error("its owner has ended it") }))
		require.NoError(t, l.End())
		w.answers(func(context.Context, made) ([]error, error) { return []error{lease.ErrLost}, nil })
		time.Sleep(3 * length)
		assert.Len(t, w.made(), 1)
		require.NoError(t, l.End(), "the answer is final")
		require.NoError(t, l.Release(ctx))
	})
}

func TestReleaseWaitsForARenewalThatIsOnItsWay(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		returned := false
		w.answers(func(context.Context, made) ([]error, error) {
			time.Sleep(time.Second)
			returned = true
			return nil, nil
		})
		l := w.keep("k", length)
		time.Sleep(length / 3) // it is on its way
		for range 2 {
			async.Go(ctx, func(ctx context.Context) error {
				assert.NoError(t, l.Release(ctx))
				assert.True(t, returned)
				return nil
			})
		}
	})
}

func TestReleaseIsBoundedByItsContextAndCutsTheRenewalShort(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		var cut time.Duration
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			<-ctx.Done()
			cut = w.k.Now()
			return nil, ctx.Err()
		})
		l := w.keep("k", length)
		time.Sleep(length / 3)
		bound, cancel := context.WithTimeoutCause(ctx, time.Second, errStore)
		defer cancel()
		require.ErrorIs(t, l.Release(bound), errStore)
		synctest.Wait()
		assert.Equal(t, w.k.Now(), cut, "nobody needs it")
		require.NoError(t, l.Release(ctx))
	})
}

func TestARenewalThatOthersNeedIsNotCutShort(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			assert.NoError(t, async.Sleep(ctx, time.Second))
			return nil, nil
		})
		a, b := w.keep("a", length), w.keep("b", length)
		time.Sleep(length/3 + time.Second/2)
		over, cancel := context.WithCancel(ctx)
		cancel()
		assert.Error(t, a.Release(over))
		time.Sleep(length / 5)
		require.NoError(t, b.Release(ctx))
	})
}

func TestALeaseIsHeldAsLongAsTheTasksOfItsScopeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := asynctest.Context(t)
		calls := 0
		var l *lease.Lease
		err := async.Scope(root, func(ctx context.Context) error {
			k := lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) { calls++; return nil, nil })
			var err error
			l, err = k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
			require.NoError(t, err)
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				defer func() { async.OnExit(root, func(context.Context, error) error { return nil }) }()
				time.Sleep(time.Second)
				assert.NoError(t, l.Err(), "hooks that were registered later come first")
				return nil
			})
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(10 * length)
				assert.NoError(t, l.Err())
				return nil
			})
			return errStore
		})
		require.ErrorIs(t, err, errStore)
		is(t, l.Err(), lease.ErrEnded)
		require.ErrorIs(t, l.Err(), async.ErrScopeEnded)
		require.ErrorIs(t, l.End(), async.ErrScopeEnded, "its owner has not ended it")
		assert.GreaterOrEqual(t, calls, 30)
		before := calls
		time.Sleep(length)
		assert.Equal(t, before, calls)
	})
}

func TestAKeeperWhoseScopeHasEndedKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *lease.Keeper[string]
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k = lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) { return nil, nil })
			return nil
		}))
		_, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
		require.ErrorIs(t, err, async.ErrScopeEnded)
	})
}

func TestTheEndOfTheScopeCutsCallsShortAndJoinsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := lease.NewKeeper(ctx, func(ctx context.Context, _ batch) ([]error, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended = true
				return nil, ctx.Err()
			})
			_, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
			require.NoError(t, err)
			time.Sleep(length / 3)
			return nil
		}))
		assert.True(t, ended)
	})
}

func TestACallThatNeverReturnsIsAnErrorOfTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		begin := time.Now()
		var left time.Duration
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) { <-never; return nil, nil })
			_, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
			require.NoError(t, err)
			time.Sleep(length / 3)
			left = time.Since(begin)
			return nil
		}, async.HookTimeout(2*time.Second))
		require.Error(t, err)
		assert.Equal(t, left+2*time.Second, time.Since(begin))
		close(never)
	})
}

func TestAPanicOfARenewalIsAFailedRenewalAndAnErrorOfTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) {
				if calls++; calls == 1 {
					panic(errStore)
				}
				return nil, nil
			})
			l, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
			require.NoError(t, err)
			time.Sleep(length * 2)
			require.NoError(t, l.Err(), "the renewal after it had success")
			require.NoError(t, l.Release(ctx))
			synctest.Wait()
			l, err = k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
			require.NoError(t, err)
			return l.Release(ctx)
		})
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		assert.Equal(t, errStore, p.Value)
	})
}

func TestAKeeperNeedsAFunctionAndAScope(t *testing.T) {
	renew := func(context.Context, batch) ([]error, error) { return nil, nil }
	assert.PanicsWithValue(t,
		"lease: NewKeeper on a context without a scope: call it with the ctx of async.Scope or of a task",
		func() { lease.NewKeeper(context.Background(), renew) })
	assert.Panics(t, func() { lease.WithClock(nil) })
	assert.Panics(t, func() { lease.Most(0) })
	assert.Panics(t, func() { lease.CauseOf(nil) })
	assert.Panics(t, func() { lease.OnLoss(nil) })
	in(t, func(ctx context.Context, w *world) {
		assert.Panics(t, func() { lease.NewKeeper[string](ctx, nil) })
		assert.Panics(t, func() { lease.NewKeeper(ctx, renew, nil) })
		assert.Panics(t, func() { _, _ = w.k.Keep("k", lease.Term{Granted: w.k.Now(), Length: length}, nil) })
	})
}

// An unscoped keeper renews until each lease is released. It has no end of its own.
func TestAnUnscopedKeeperRenewsUntilTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		renew := func(context.Context, batch) ([]error, error) { calls++; return nil, nil }
		k := lease.NewKeeper(context.Background(), renew, lease.Unscoped())
		l, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
		require.NoError(t, err)
		time.Sleep(10 * length)
		require.NoError(t, l.Err())
		assert.GreaterOrEqual(t, calls, 30)
		require.NoError(t, l.Release(t.Context()))
		before := calls
		time.Sleep(length)
		assert.Equal(t, before, calls)
	})
}
