package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

func TestExtendRenewsAtOnceAndLaterRenewalsAreTheUsualOnes(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		require.NoError(t, l.Extend(ctx, time.Hour))
		assert.Equal(t, lease.Term{Length: time.Hour}.Believed(), l.Remaining())
		require.NoError(t, l.Extend(ctx, 0))
		assert.Equal(t, lease.Term{Length: time.Hour}.Believed(), l.Remaining(), "it never gets shorter")
		time.Sleep(length)
		var asked []time.Duration
		for _, c := range w.made() {
			asked = append(asked, c.batch[0].Length)
		}
		assert.Equal(t, []time.Duration{time.Hour, length, length, length, length}, asked)
		require.NoError(t, l.Release(ctx))
		is(t, l.Extend(ctx, 0), lease.ErrEnded)
	})
}

func TestExtendOfAFixedLeaseIsItsOnlyRenewal(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length, lease.Fixed())
		time.Sleep(length / 2)
		require.NoError(t, l.Extend(ctx, 0))
		time.Sleep(length / 2)
		require.NoError(t, l.Err())
		time.Sleep(length / 2)
		is(t, l.Err(), lease.ErrOver)
		assert.Len(t, w.made(), 1)
	})
}

func TestExtendWaitsForARenewalThatIsOnItsWay(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		running := 0
		w.answers(func(context.Context, made) ([]error, error) {
			running++
			assert.Equal(t, 1, running)
			time.Sleep(time.Second)
			running--
			return nil, nil
		})
		l := w.keep("k", length)
		time.Sleep(length / 3)
		require.NoError(t, l.Extend(ctx, 0))
		assert.Len(t, w.made(), 2)
		require.NoError(t, l.Release(ctx))
	})
}

func TestExtendIsBoundedByItsContextAndByASixth(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(silent)
		l := w.keep("k", length)
		begin := time.Now()
		bound, cancel := context.WithTimeoutCause(ctx, time.Second, errStore)
		defer cancel()
		require.ErrorIs(t, l.Extend(bound, 0), errStore)
		assert.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, l.Extend(ctx, 0), context.DeadlineExceeded)
		assert.Equal(t, time.Second+length/6, time.Since(begin))
		require.NoError(t, l.Err(), "the lease is what it was")
		w.answers(nil)
		time.Sleep(length)
		require.NoError(t, l.Err(), "and is renewed again")
		require.NoError(t, l.Release(ctx))
	})
}

func TestExtendEndsWithTheLease(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(silent)
		l := w.keep("k", length)
		async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return l.Release(ctx) })
		is(t, l.Extend(ctx, time.Hour), lease.ErrEnded)

		w.answers(func(context.Context, made) ([]error, error) { return nil, lease.ErrLost })
		l = w.keep("k", length)
		is(t, l.Extend(ctx, 0), lease.ErrLost)
		is(t, l.Err(), lease.ErrLost)
	})
}

func TestReleaseWaitsForAnExtensionThatIsOnItsWay(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		returned := false
		w.answers(func(context.Context, made) ([]error, error) {
			time.Sleep(time.Second)
			returned = true
			return nil, nil
		})
		l := w.keep("k", length)
		async.Go(ctx, func(ctx context.Context) error { _ = l.Extend(ctx, 0); return nil })
		synctest.Wait()
		require.NoError(t, l.Release(ctx))
		assert.True(t, returned)
	})
}

func TestAPanicOfTheRenewFunctionIsRaisedByExtend(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(func(context.Context, made) ([]error, error) { panic("no") })
		l := w.keep("k", length)
		assert.PanicsWithValue(t, "no", func() { _ = l.Extend(ctx, 0) })
		w.answers(nil)
		time.Sleep(length)
		require.NoError(t, l.Err())
		require.NoError(t, l.Release(ctx))
	})
}
