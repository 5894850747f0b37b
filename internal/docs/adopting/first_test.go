package adopting

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// deaf is work that takes 3 s and does not look at its context.
func deaf(done *atomic.Bool) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		time.Sleep(3 * time.Second)
		done.Store(true)
		return "late", nil
	}
}

func TestWithoutAScopeNobodyJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		_, err := Loose(t.Context(), deaf(&done))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, done.Load())
		time.Sleep(3 * time.Second) // else the bubble is left with it
		require.True(t, done.Load())
	})
}

func TestAScopeOfItsOwnJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		_, err := Joined(t.Context(), deaf(&done))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, done.Load())
	})
}

func TestWaitABitLetsItRunOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		upload := async.Execute(ctx, func(ctx context.Context) (int, error) { return 7, async.Sleep(ctx, 8*time.Second) })
		_, over, err := WaitABit(ctx, upload)
		require.False(t, over)
		require.NoError(t, err)
		n, over, err := WaitABit(ctx, upload)
		require.NoError(t, err)
		require.True(t, over)
		require.Equal(t, 7, n)
	})
}

func TestStopAndJoinReturnsWhenItHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(asynctest.Context(t))
		defer cancel()
		var done atomic.Bool
		upload := async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			done.Store(true)
			return 0, context.Cause(ctx)
		})
		cancel()
		_, err := StopAndJoin(ctx, upload, errTest)
		require.True(t, done.Load())
		require.Error(t, err)
	})
}
