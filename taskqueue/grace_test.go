package taskqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// In the grace, and after it, a Cancel is one: the task is not run again.
func TestACancelDuringTheGrace(t *testing.T) {
	for name, at := range map[string]time.Duration{"during": 10 * time.Second, "after": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(t)
				id := add(t, q, taskqueue.Task{Type: "t"})
				work, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(at, func() { _, _ = q.Cancel(t.Context(), id) })
				require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					stop()
					<-ctx.Done()
					time.Sleep(time.Minute) // it takes its time
					return ctx.Err()
				}}, taskqueue.ShutdownGrace(30*time.Second)))
				i, err := q.Get(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, taskqueue.StateCancelled, i.State)
			})
		})
	}
}

// Section 7: released after its handler has returned, extended until then.
func TestARunThatIsToldToStopKeepsItsLeaseUntilItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			stop()
			<-ctx.Done()
			for range 20 { // ten leases
				time.Sleep(15 * time.Second)
				got, err := s.Claim(context.WithoutCancel(ctx), store.ClaimRequest{Queue: q.Name(), Worker: "thief", Max: 1, Lease: time.Minute})
				assert.NoError(t, err)
				assert.Empty(t, got.Tasks)
			}
			return ctx.Err()
		}}, taskqueue.ShutdownGrace(time.Second)))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateReady, i.State)
		assert.Zero(t, i.Attempt+i.Failures+i.Crashes)
	})
}

// A task that fails by itself while its worker stops has failed.
func TestAFailureDuringTheGraceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			stop()
			return errBoom
		}}))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, 1, i.Failures)
	})
}
