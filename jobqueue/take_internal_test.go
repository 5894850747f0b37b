package jobqueue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// waiting returns a waiter of the scope of ctx that q has on its list.
func waiting(t *testing.T, q *Queue[int, int], ctx context.Context, limit int) *waiter[int, int] {
	w := &waiter[int, int]{limit: limit}
	w.future, w.promise = async.NewPromise[struct{}](context.WithoutCancel(ctx)) // as Take does
	jobs, err := q.takeNow(bridge.ScopeOf(ctx), limit, w)
	require.NoError(t, err)
	require.Nil(t, jobs)
	return w
}

// served has q serve w, and nobody wake it: the instant in which its ctx may be
// seen done.
func served(q *Queue[int, int], w *waiter[int, int], jobs ...int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, job := range jobs {
		q.core.add(job, job, 0, 0, 0)
	}
	q.core.serve(0, new(waiters[int, int]))
}

// A waiter that was served and sees its ctx done gives the jobs on, to who waits
// next, and they were never tried.
func TestAServedWaiterGivesOn(t *testing.T) {
	q := New[int]()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		dying, cancel := context.WithCancel(ctx)
		first, second := waiting(t, q, dying, 3), waiting(t, q, ctx, 1)
		served(q, first, 1, 2, 3)
		assert.Equal(t, []int{1, 2, 3}, q.InProgress())
		q.Ack(ctx, 2) // it is of the same scope
		cancel()
		jobs, err := q.wait(dying, first)
		assert.Empty(t, jobs)
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []int{1}, q.InProgress())
		assert.Equal(t, []int{3}, q.Queued())
		assert.Equal(t, 1, q.Attempt(1))
		assert.Equal(t, 0, q.Attempt(3))
		jobs, err = q.wait(ctx, second)
		assert.Equal(t, []int{1}, jobs)
		return err
	}))
	assert.Equal(t, uint64(2), q.Stats().Done)
}

// A job that a waiter was handed and somebody of its scope has settled meanwhile is not
// its own any more, although the same scope has it again. It waits on.
func TestWhatOthersHaveSettledIsNotAWaiters(t *testing.T) {
	q := New[int]()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		w := waiting(t, q, ctx, 1)
		served(q, w, 1)
		q.Nack(ctx, nil, 1)
		again, err := q.Take(ctx, 1)
		require.NoError(t, err)
		assert.Equal(t, []int{1}, again)
		w.promise.Resolve(struct{}{})
		jobs, err := q.wait(ctx, w)
		assert.NoError(t, err)
		assert.Empty(t, jobs)
		assert.Equal(t, []int{1}, q.InProgress())
		return nil
	}))
}

// A scope that ends well has not done what a waiter was handed and has not heard
// of: one that was given its ctx by mistake.
func TestWhatNobodyHeardOfIsNotDone(t *testing.T) {
	q := New[int]()
	var w *waiter[int, int]
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		w = waiting(t, q, ctx, 1)
		served(q, w, 1)
		return nil
	}))
	assert.Equal(t, []int{1}, q.Queued())
	assert.Zero(t, q.Attempt(1))
	w.promise.Resolve(struct{}{})
	_, err := q.wait(t.Context(), w)
	assert.ErrorIs(t, err, async.ErrScopeEnded)
}

// Jobs that are due although the timer has not come by go to who waits, not to
// who takes just now.
func TestWhatIsDueGoesToWhoWaits(t *testing.T) {
	q := New[int]()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		w := waiting(t, q, ctx, 1)
		q.mu.Lock()
		now := clock()
		q.core.add(1, 1, 0, now, now-1) // due, and no timer set
		q.mu.Unlock()
		jobs, err := q.takeNow(bridge.ScopeOf(ctx), 1, nil)
		assert.Empty(t, jobs)
		require.NoError(t, err)
		jobs, err = q.wait(ctx, w)
		assert.Equal(t, []int{1}, jobs)
		return err
	}))
}
