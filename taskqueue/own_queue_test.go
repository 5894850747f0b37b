package taskqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// The calls that a handler can make to its own task and its own queue.
func TestAHandlerUsesItsQueue(t *testing.T) {
	for name, c := range map[string]struct {
		h     func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error
		state taskqueue.State
	}{
		"cancels itself and returns nil": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			ok, err := q.Cancel(ctx, c.ID)
			assert.True(t, ok)
			return err
		}, taskqueue.StateDone},
		"cancels itself and fails": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			_, err := q.Cancel(ctx, c.ID)
			return errors.Join(err, errBoom)
		}, taskqueue.StateCancelled},
		"waits for itself": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			_, err := q.Wait(ctx, c.ID)
			assert.ErrorIs(t, err, taskqueue.ErrSelfWait)
			return nil
		}, taskqueue.StateDone},
		"waits for another of its queue, and for one of its id elsewhere": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			if c.ID == "child" {
				return nil
			}
			_, err := q.Enqueue(ctx, taskqueue.Task{ID: "child", Type: "t", Retention: time.Hour})
			assert.NoError(t, err)
			i, err := q.Wait(ctx, "child")
			assert.Equal(t, taskqueue.StateDone, i.State)
			assert.NoError(t, err)
			_, err = q.In("other").Wait(ctx, c.ID)
			assert.ErrorIs(t, err, taskqueue.ErrNotFound)
			return nil
		}, taskqueue.StateDone},
		"pauses its queue": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			return q.Pause(ctx)
		}, taskqueue.StateDone},
		"deletes itself": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			ok, err := q.Delete(ctx, c.ID)
			assert.False(t, ok)
			return err
		}, taskqueue.StateDone},
		"works on its queue": {func(ctx context.Context, q *taskqueue.Queue, c *taskqueue.Claim) error {
			_, err := q.Enqueue(ctx, taskqueue.Task{ID: "inner", Type: "u"})
			assert.NoError(t, err)
			assert.NoError(t, q.Work(ctx, taskqueue.Handlers{"u": nothing}, taskqueue.WorkUntilEmpty()))
			return nil
		}, taskqueue.StateDone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(t)
				id := add(t, q, taskqueue.Task{Type: "t", MaxFailures: 1})
				require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, cl *taskqueue.Claim) error {
					return c.h(ctx, q, cl)
				}, "u": nothing}, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(2)))
				i, err := q.Get(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, c.state, i.State)
			})
		})
	}
}
