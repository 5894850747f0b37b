package taskqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func TestProgressThatTheStoreDidNotHearIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newOutage(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			c.Progress([]byte("half"))
			s.set(true, false)
			time.AfterFunc(12*time.Second, func() { s.set(false, false) })
			if err := async.Sleep(ctx, 20*time.Second); err != nil {
				return err
			}
			i, err := q.Get(ctx, id)
			assert.NoError(t, err)
			assert.Equal(t, "half", string(i.Progress))
			return nil
		}}, taskqueue.WorkUntilEmpty()))
	})
}

// A queue whose part of the store does not answer costs no other its leases.
func TestAQueueThatDoesNotAnswerCostsNoOtherItsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &silent{Store: memstore.New(), queues: map[string]bool{"a": true, "b": true, "c": true}}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		for _, name := range []string{"a", "b", "c", "z"} {
			add(t, q.In(name), taskqueue.Task{Type: "t"})
		}
		work, stop := context.WithCancel(t.Context())
		defer stop()
		var lost atomic.Int64
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			err := async.Sleep(ctx, 5*time.Minute)
			if c.Queue == "z" {
				stop()
				if err != nil {
					lost.Add(1)
				}
			}
			return nil
		}}, taskqueue.Queues(map[string]int{"a": 1, "b": 1, "c": 1, "z": 1}), taskqueue.Lease(12*time.Second), taskqueue.ShutdownGrace(0)))
		assert.Zero(t, lost.Load())
	})
}

// silent does not answer an extension of some queues.
type silent struct {
	taskqueue.Store
	queues map[string]bool
}

func (s *silent) Extend(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
	if s.queues[r.Queue] {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Extend(ctx, r)
}
