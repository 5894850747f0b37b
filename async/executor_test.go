package async_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestARefusedTaskSaysWhy(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		refuse := async.On(pool(func(func()) error { return errFull }))
		_, err := async.Execute(ctx, answer, refuse, async.Name("job")).Await(ctx, 0)
		var rejected *async.RejectedError
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, "job", rejected.Task)
		require.Equal(t, errFull, rejected.Err)
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, nothing, refuse); return nil }), errFull)

		_, err = async.Execute(ctx, answer, async.On(pool(func(func()) error { plantedPanic(); return nil }))).Await(ctx, 0)
		require.ErrorAs(t, err, &rejected)
		require.ErrorIs(t, err, errPlanted)
	})
}

// TestAQueuedTaskOnAnExecutorIsSettledWhenCancelled, and does not run when its
// turn comes.
func TestAQueuedTaskOnAnExecutorIsSettledWhenCancelled(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var queue []func()
		queuing := async.On(pool(func(task func()) error { queue = append(queue, task); return nil }))
		hook := async.OnAbort(func(context.Context, error) error { t.Error("a hook ran"); return nil })
		f := async.Execute(ctx, panicking, queuing, hook)
		require.Equal(t, async.StateQueued, f.State())
		require.False(t, f.IsRunning())
		require.True(t, f.Cancel(errCancelBoom))
		_, err, ok := f.Result()
		require.True(t, ok, "at once")
		require.ErrorIs(t, err, errCancelBoom)

		f = async.Execute(ctx, panicking, queuing, hook)
		_, err = f.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, async.StateDone, f.State())

		g := async.Execute(ctx, answer, queuing)
		for _, task := range queue {
			task()
		}
		v, err := g.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 42, v)
	})
}

// TestStartingBlocksAsLongAsTheExecutor, but no longer than the task lives.
func TestStartingBlocksAsLongAsTheExecutor(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		on := async.On(oneSlot())
		first := async.Execute(ctx, sleeper(time.Second), on)
		require.Zero(t, time.Since(start))
		second := async.Execute(ctx, sleeper(time.Second), on)
		require.Equal(t, time.Second, time.Since(start))
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		third := async.Execute(short, sleeper(time.Second), on)
		require.Equal(t, 1100*time.Millisecond, time.Since(start))
		_, err := third.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1100*time.Millisecond, time.Since(start))
		for _, f := range []*async.Future[time.Duration]{first, second} {
			_, err := f.Wait(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			begin := time.Now()
			for range 5 {
				async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
			}
			require.Zero(t, time.Since(begin), "under a Limit it does not block")
			return nil
		}, on, async.Limit(2)))
	})
}

// TestWaitingInTheOnlyPlaceOfAPoolForThePool times out, as it was told to.
func TestWaitingInTheOnlyPlaceOfAPoolForThePool(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner error
		err := async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
				v, err := async.Execute(ctx, answer).Await(ctx, time.Second)
				inner = err
				return v, err
			}).Await(ctx, time.Minute)
			return err
		}, async.On(oneSlot()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, inner, context.DeadlineExceeded)
	})
}

// TestOnHoldsForAllThatIsStartedInside a scope, racers and items included, and
// for one task only.
func TestOnHoldsForAllThatIsStartedInside(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var n atomic.Int32
		counting := async.On(pool(func(task func()) error { n.Add(1); go task(); return nil }))
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Race(ctx, after(1, 1, nil), after(2, 1, nil)).Await(ctx, 0)
			require.NoError(t, err)
			require.EqualValues(t, 2, n.Load())
			_, err = async.ForkJoin(ctx, []int{1, 2, 3}, square).Await(ctx, 0)
			require.NoError(t, err)
			require.EqualValues(t, 5, n.Load())
			_, err = async.Execute(ctx, func(ctx context.Context) (int, error) {
				return async.Execute(ctx, answer).Await(ctx, 0) // in a task of the scope
			}).Await(ctx, 0)
			require.EqualValues(t, 7, n.Load())
			return err
		}, counting))
		_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			return async.Execute(ctx, answer).Await(ctx, 0)
		}, counting).Await(ctx, 0)
		require.NoError(t, err)
		require.EqualValues(t, 8, n.Load())
		_, err = async.ForkJoin(ctx, []int{1, 2, 3}, square, counting).Await(ctx, 0)
		require.NoError(t, err)
		require.EqualValues(t, 11, n.Load())
	})
}
