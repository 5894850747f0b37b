package taskqueue_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// A result belongs to a run that has ended well.
func TestAResult(t *testing.T) {
	set := func(b []byte, err error) taskqueue.Handler {
		return func(_ context.Context, c *taskqueue.Claim) error {
			c.SetResult([]byte("the first"))
			own := slices.Clone(b)
			c.SetResult(own)
			own[0] = 'X'
			return err
		}
	}
	shared := []byte("as it was")
	for name, c := range map[string]struct {
		h      taskqueue.Handler
		state  taskqueue.State
		result string
	}{
		"the last call counts, and is copied": {set(shared, nil), taskqueue.StateDone, "as it was"},
		"a failure has none":                  {set(shared, errBoom), taskqueue.StateRetrying, ""},
		"a dead letter has none":              {set([]byte("x"), taskqueue.Dead(errBoom)), taskqueue.StateDead, ""},
		"what is snoozed has none":            {set([]byte("x"), taskqueue.Snooze(time.Hour)), taskqueue.StateScheduled, ""},
		"the longest":                         {set(make([]byte, taskqueue.MaxResult), nil), taskqueue.StateDone, string(make([]byte, taskqueue.MaxResult))},
		"too long":                            {set(make([]byte, taskqueue.MaxResult+1), nil), taskqueue.StateDead, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := once(t, taskqueue.Task{Retention: time.Hour}, c.h)
				assert.Equal(t, c.state, i.State)
				assert.True(t, c.result == string(i.Result), "%d bytes", len(i.Result))
				if name == "too long" {
					assert.Contains(t, i.LastError, "store it elsewhere")
				}
			})
		})
	}
}

func TestProgressIsSeenWhileATaskRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			half := []byte("half")
			c.Progress(half)
			copy(half, "XXXX")
			if err := async.Sleep(ctx, taskqueue.DefaultLease); err != nil {
				return err
			}
			i, err := q.Get(ctx, id)
			assert.NoError(t, err)
			assert.Equal(t, "half", string(i.Progress))
			c.Progress(make([]byte, taskqueue.MaxProgress+1))
			return nil
		}}, taskqueue.WorkUntilEmpty()))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDead, i.State)
		assert.Contains(t, i.LastError, "Progress")
	})
}

// All results of one moment do not go in one step.
func TestManyLongResultsAreSettledInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := &settleSizes{Store: memstore.New()}
		q, err := taskqueue.New(sizes)
		require.NoError(t, err)
		const n = 24
		for range n {
			add(t, q, taskqueue.Task{Type: "t"})
		}
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			c.SetResult(make([]byte, taskqueue.MaxResult))
			return nil
		}}, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(n)))
		assert.Equal(t, int64(taskqueue.MaxBatchBytes), sizes.most.Load(), "no more, and they go together")
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, n, stats.States[taskqueue.StateDone])
	})
}
