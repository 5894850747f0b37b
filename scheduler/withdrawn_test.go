package scheduler

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// never is a pool that never comes.
var never = ExecutorFunc(func(func()) error { return nil })

// TestCancelPendingStopsAPeriodicTaskThatIsAboutToRun is about the moment
// between the start of an entry and that of its function.
func TestCancelPendingStopsAPeriodicTaskThatIsAboutToRun(t *testing.T) {
	w := New(never).NewWorker(t.Context())
	task, err := w.ScheduleEvery(0, 0, func(context.Context) {})
	require.NoError(t, err)
	_, from, _ := w.q.takeBatch(1)
	w.q.start(from)
	w.CancelPending()
	require.True(t, w.run(task.n))
	w.mu.Lock()
	w.q.endBatch(from + 1)
	again := w.againLocked(task.n)
	w.mu.Unlock()
	require.False(t, again)
	require.Equal(t, Cancelled, task.State())
}

// TestAFutureThatIsCancelledWhileItWaitsForRoomIsNotAccepted is also about who
// comes after it, and about the counts.
func TestAFutureThatIsCancelledWhileItWaitsForRoomIsNotAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events int
		w := New(Goroutines()).NewWorker(t.Context(), Capacity(1, Block), Observe(func(Event) { events++ }))
		gate := make(chan struct{})
		require.NoError(t, w.Post(func() { <-gate }))
		synctest.Wait()
		require.NoError(t, w.Post(func() {}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := Call(ctx, w, func(context.Context) (int, error) { return 1, nil })
			require.ErrorIs(t, err, context.Canceled)
		}()
		synctest.Wait()
		require.Len(t, w.room.blocked, 1)
		cancel()
		synctest.Wait()
		require.Empty(t, w.room.blocked)
		require.Zero(t, events)
		close(gate)
		require.NoError(t, w.Drain(t.Context()))
		require.Equal(t, 2, events)
		require.Equal(t, uint64(2), w.Stats().Scheduled)
	})
}
