package async_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestSleep(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		require.NoError(t, async.Sleep(ctx, time.Hour))
		require.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, async.Sleep(ctx, 0))
		require.NoError(t, async.Sleep(ctx, -1))
		require.Equal(t, time.Hour, time.Since(start))

		f := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, math.MaxInt64) })
		time.Sleep(time.Second)
		f.Cancel(errCancelBoom)
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, errCancelBoom)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Hour+time.Second, time.Since(start))

		done, cancel := context.WithCancelCause(ctx)
		cancel(errCancelWhy)
		require.ErrorIs(t, async.Sleep(done, 0), errCancelWhy)
		require.ErrorIs(t, async.Sleep(done, 1), errCancelWhy)

		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		require.ErrorIs(t, async.Sleep(short, time.Minute), context.DeadlineExceeded)
		require.Equal(t, time.Hour+2*time.Second, time.Since(start))
	})
}

// TestSleepersLendTheirSlots and get one back in turn.
func TestSleepersLendTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var running atomic.Int32
		work := func() {
			if running.Add(1) > 1 {
				t.Error("two run at once")
			}
			time.Sleep(time.Second)
			running.Add(-1)
		}
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for range 10 {
				async.Go(ctx, func(ctx context.Context) error {
					work()
					if err := async.Sleep(ctx, time.Minute); err != nil {
						return err
					}
					work()
					return nil
				})
			}
			return nil
		}, async.Limit(1)))
		require.Equal(t, time.Minute+11*time.Second, time.Since(start))
	})
}

// TestASleepCutShortInTheQueueOfALimit returns at once, though all slots are
// taken.
func TestASleepCutShortInTheQueueOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f := async.Start(ctx, func(ctx context.Context) error {
				err := async.Sleep(ctx, time.Second) // after which the other has the slot
				require.Equal(t, 2*time.Second, time.Since(start))
				return err
			})
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
			time.Sleep(2 * time.Second)
			f.Cancel(errCancelBoom)
			return nil
		}, async.Limit(1)))
		require.Equal(t, time.Hour, time.Since(start))
	})
}
