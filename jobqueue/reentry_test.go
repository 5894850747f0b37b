package jobqueue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A value that a batch leaves unread is discarded before the next batch begins.
func TestAValueThatABatchLeavesIsDiscardedBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1, 2)
		discarded := 0
		require.NoError(t, q.Consume(t.Context(), 1, 1, func(ctx context.Context, jobs []int) error {
			assert.Equal(t, jobs[0]-1, discarded)
			async.Execute(ctx, func(context.Context) (int, error) { return 1, nil }, async.OnDiscard(func(int) { discarded++ }))
			synctest.Wait()
			if jobs[0] == 2 {
				q.Close()
			}
			return nil
		}))
		assert.Equal(t, 2, discarded)
	})
}

// The function of MaxAttempts may use the queue.
func TestADeadJobMayBeAddedAgain(t *testing.T) {
	var q *jobqueue.Queue[int, int]
	n := 0
	q = jobqueue.New[int](jobqueue.WhileRunning(jobqueue.RunAgain), jobqueue.MaxAttempts(1, func(j int, _ error) {
		if n++; n < 3 {
			q.Add(j)
		} else {
			q.Close()
		}
	}))
	q.Add(1)
	require.NoError(t, q.Consume(t.Context(), 2, 1, func(context.Context, []int) error { return errBoom }))
	assert.Equal(t, 3, n)
}

// An observer may close the queue, whatever it is being told.
func TestAnObserverMayCloseTheQueue(t *testing.T) {
	for k := jobqueue.Added; k <= jobqueue.Removed; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q *jobqueue.Queue[int, int]
				q = jobqueue.New[int](jobqueue.MaxAttempts[int](2, nil), jobqueue.Observe(func(e jobqueue.Event[int]) {
					if e.Kind == k {
						q.Close()
					}
				}))
				q.AddAll(1, 2, 2, 3)
				q.Remove(3)
				runs := 0
				time.AfterFunc(time.Hour, q.Close)
				err := q.Consume(t.Context(), 1, 1, func(ctx context.Context, jobs []int) error {
					runs++
					if jobs[0] == 1 {
						return errBoom
					}
					if runs < 5 {
						q.Nack(ctx, nil, 2)
					}
					if runs > 100 {
						return errBoom
					}
					return nil
				})
				assert.NoError(t, err)
				_, p := q.Len()
				assert.Zero(t, p)
			})
		})
	}
}

// While a RetryDelay is asked its job is in progress; then the queue is closed, and the job is back.
func TestARetryDelayMayCloseTheQueue(t *testing.T) {
	var q *jobqueue.Queue[int, int]
	q = jobqueue.New[int](jobqueue.RetryDelay(func(int) time.Duration { q.Close(); q.Remove(1); return time.Hour }))
	q.AddAll(1, 2)
	require.NoError(t, q.Consume(t.Context(), 1, 2, func(context.Context, []int) error { return errBoom }))
	assert.Equal(t, []int{1, 2}, q.Queued())
	assert.ErrorIs(t, q.Drain(t.Context()), jobqueue.ErrClosed)
}

// A oneAtATime is a pool with one goroutine.
type oneAtATime chan struct{}

func (c oneAtATime) Execute(f func()) error {
	c <- struct{}{}
	go func() { defer func() { <-c }(); f() }()
	return nil
}

// Consume does its work on a pool that has room for fewer than its workers.
func TestConsumeOnAPoolThatIsTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1, 2, 3, 4)
		pool := make(oneAtATime, 1)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			time.AfterFunc(time.Second, q.Close)
			return q.Consume(ctx, 3, 1, func(ctx context.Context, jobs []int) error { return nil })
		}, async.On(pool)))
		assert.Equal(t, uint64(4), q.Stats().Done)
	})
}

// Under a context that is done from the first nothing is taken.
func TestNothingIsTakenUnderADoneContext(t *testing.T) {
	q := queueOf(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	err := q.Consume(ctx, 2, 1, never)
	assert.ErrorIs(t, err, errBoom)
	assert.ErrorIs(t, err, context.Canceled)
	err = q.Do(ctx, 1, never)
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{1}, q.Queued())
	assert.Zero(t, q.Stats().Taken)
}

// A scope settles what it has taken from each of two queues.
func TestOneScopeMayTakeFromTwoQueues(t *testing.T) {
	a, b := queueOf(1, 2), queueOf(1, 2)
	_ = async.Scope(t.Context(), func(ctx context.Context) error {
		for range 3 {
			x, y := take(t, ctx, a, 1), take(t, ctx, b, 1)
			a.Ack(ctx, x...)
			a.Add(x[0])
			b.Nack(ctx, nil, y...)
		}
		take(t, ctx, a, 2)
		take(t, ctx, b, 1)
		b.Ack(ctx, 1)
		return errBoom
	})
	assert.Len(t, a.Queued(), 2)
	assert.Equal(t, []int{2}, b.Queued())
}

// A scope inside settles jobs of the scope around it, takes more, and gives some back.
func TestAScopeInsideMaySettleForTheOneAround(t *testing.T) {
	q := queueOf(1, 2, 3)
	_ = q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
		err := q.Do(ctx, 1, func(ctx context.Context, _ []int) error {
			q.Ack(ctx, 1) // of the scope around
			take(t, ctx, q, 1)
			q.Nack(ctx, errors.New("x"), 2)
			return nil
		})
		assert.NoError(t, err)
		assert.Equal(t, []int{2}, q.Queued())
		return errBoom
	})
	assert.Equal(t, []int{2}, q.Queued())
	assert.EqualValues(t, 2, q.Stats().Done)
}
