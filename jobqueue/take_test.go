package jobqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

func TestTakeNeedsAScope(t *testing.T) {
	q := queueOf(1)
	jobs, err := q.Take(t.Context(), 1)
	assert.ErrorIs(t, err, jobqueue.ErrNoScope)
	assert.Empty(t, jobs)
	assert.Equal(t, []int{1}, q.Queued())
}

func TestTakeTakesAtMostWhatItMayInOrder(t *testing.T) {
	q := queueOf(1, 2, 3, 4, 5)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		jobs, err := q.Take(ctx, 3)
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3}, jobs)
		assert.Equal(t, []int{1, 2, 3}, q.InProgress())
		jobs, err = q.Take(ctx, 3)
		require.NoError(t, err)
		assert.Equal(t, []int{4, 5}, jobs)
		return nil
	}))
	queued, inProgress := q.Len()
	assert.Zero(t, queued+inProgress)
}

func TestTakeBlocksUntilThereIsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			first := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 2) })
			synctest.Wait()
			second := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 2) })
			synctest.Wait()
			assert.False(t, isDone(first) || isDone(second))

			q.AddAll(1, 2, 3)
			jobs, err := first.Await(ctx, 0)
			require.NoError(t, err)
			assert.Equal(t, []int{1, 2}, jobs, "who waited longest is served first")
			jobs, err = second.Await(ctx, 0)
			require.NoError(t, err)
			assert.Equal(t, []int{3}, jobs)
			return nil
		}))
	})
}

// A consumer that waits for jobs lends its slot to who makes them.
func TestTakeLendsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			taken := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 1) })
			synctest.Wait()
			async.Go(ctx, func(context.Context) error { q.Add(1); return nil })
			jobs, err := taken.Wait(ctx)
			assert.Equal(t, []int{1}, jobs)
			return err
		}, async.Limit(1)))
	})
}

// A waiter whose ctx ends in the instant in which it is served gives the jobs
// on: to who waits next, or back.
func TestAServedWaiterThatIsCancelledGivesTheJobsOn(t *testing.T) {
	for range 300 {
		q := jobqueue.New[int]()
		var got atomic.Int32
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			dying, cancel := context.WithCancel(ctx)
			first := async.Start(ctx, func(ctx context.Context) error {
				return async.Scope(dying, func(ctx context.Context) error {
					_, err := q.Take(ctx, 1)
					if err == nil {
						<-ctx.Done() // it has one, and gives it back
					}
					return err
				})
			})
			async.Go(ctx, func(ctx context.Context) error {
				jobs, err := q.Take(ctx, 1)
				got.Add(int32(len(jobs)))
				return err
			})
			async.Go(ctx, func(context.Context) error { cancel(); return nil })
			q.Add(1)
			_, _ = first.Wait(ctx)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, int32(1), got.Load())
		require.Empty(t, q.Queued())
	}
}

// With a ctx that is done nothing is taken, although there are jobs.
func TestTakeWithADoneContextTakesNothing(t *testing.T) {
	cause := errors.New("going home")
	q := queueOf(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := async.Scope(ctx, func(ctx context.Context) error {
		cancel(cause)
		jobs, err := q.Take(ctx, 1)
		assert.Empty(t, jobs)
		assert.ErrorIs(t, err, cause)
		assert.ErrorIs(t, err, context.Canceled)
		return err
	})
	assert.ErrorIs(t, err, cause)
	assert.Zero(t, q.Stats().Taken)
}

// Whoever was handed the ctx of a scope by mistake is told when that has ended,
// before or while it waits, and the scope is none the worse for it.
func TestTakeOfAnEndedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		told := make(chan error, 1)
		var stray context.Context
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			stray = ctx
			go func() { _, err := q.Take(ctx, 1); told <- err }()
			synctest.Wait()
			return nil
		}))
		assert.ErrorIs(t, <-told, async.ErrScopeEnded)
		q.Add(1)
		_, err := q.Take(stray, 1)
		assert.ErrorIs(t, err, async.ErrScopeEnded)
		assert.Equal(t, []int{1}, q.Queued())
	})
}
