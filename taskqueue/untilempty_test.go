package taskqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

func TestWorkUntilEmptyEndsWithTheLastRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		for range 20 {
			add(t, q, taskqueue.Task{Type: "t"})
			add(t, q.In("other"), taskqueue.Task{Type: "t"})
		}
		later := add(t, q, taskqueue.Task{Type: "t", Delay: time.Second})
		begin := time.Now()
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			return async.Sleep(ctx, 100*time.Millisecond)
		}}, taskqueue.WorkUntilEmpty(), taskqueue.Queues(map[string]int{q.Name(): 1, "other": 1}), taskqueue.Concurrency(10)))
		assert.Equal(t, 400*time.Millisecond, time.Since(begin))
		i, err := q.Get(t.Context(), later)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateScheduled, i.State, "it is not due")
	})
}

func TestWorkUntilEmptyWaitsForWhatALimitHoldsBack(t *testing.T) {
	for name, set := range map[string]taskqueue.Settings{"rate": {Rate: 0.1}, "concurrency": {Concurrency: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(t)
				require.NoError(t, q.Configure(t.Context(), func(s *taskqueue.Settings) { *s = set }))
				for range 5 {
					add(t, q, taskqueue.Task{Type: "t"})
				}
				ran := 0
				require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					ran++
					return async.Sleep(ctx, time.Second)
				}}, taskqueue.WorkUntilEmpty()))
				assert.Equal(t, 5, ran)
			})
		})
	}
}

func TestWorkUntilEmptyWaitsForWhatALimitOfAKeyHoldsBack(t *testing.T) {
	for name, l := range map[string]taskqueue.Limit{"rate": {Key: "k", Rate: 0.1}, "concurrency": {Key: "k", Concurrency: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(t)
				require.NoError(t, q.SetLimit(t.Context(), l))
				for range 5 {
					add(t, q, taskqueue.Task{Type: "t", LimitKey: "k"})
				}
				ran := 0
				require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					ran++
					return async.Sleep(ctx, time.Second)
				}}, taskqueue.WorkUntilEmpty()))
				assert.Equal(t, 5, ran)
			})
		})
	}
}

func TestWorkUntilEmptyLeavesAPausedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		add(t, q, taskqueue.Task{Type: "t"})
		require.NoError(t, q.Pause(t.Context()))
		ran := 0
		count := taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error { ran++; return nil }}
		require.NoError(t, q.Work(t.Context(), count, taskqueue.WorkUntilEmpty()))
		assert.Zero(t, ran)
		require.NoError(t, q.Resume(t.Context()))
		require.NoError(t, q.Work(t.Context(), count, taskqueue.WorkUntilEmpty()))
		assert.Equal(t, 1, ran)
	})
}
