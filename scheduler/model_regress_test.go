package scheduler

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Here are moments that are too short to be met from outside.

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

func TestNoTimerRunsForNothing(t *testing.T) {
	f := func(context.Context) {}
	for name, end := range map[string]func(w *ExecutorWorker, task Task){
		"Cancel":        func(_ *ExecutorWorker, task Task) { task.Cancel() },
		"CancelPending": func(w *ExecutorWorker, _ Task) { w.CancelPending() },
		"Close":         func(w *ExecutorWorker, _ Task) { _ = w.Close() },
		"DropOldest":    func(w *ExecutorWorker, _ Task) { _ = w.Post(func() {}) },
		"Drain":         func(w *ExecutorWorker, _ Task) { _ = w.Drain(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := New(Goroutines()).NewWorker(t.Context(), Capacity(1, DropOldest))
			task, err := w.ScheduleAfter(time.Hour, f)
			require.NoError(t, err)
			require.True(t, w.armed)
			end(w, task)
			w.mu.Lock()
			defer w.mu.Unlock()
			require.False(t, w.armed)
			require.False(t, w.timer.Stop())
		})
	}
}

// TestDeadlinesAreInOrderWhenTheTimerIsLate schedules a task whose deadline has
// passed already when it is accepted, while the timer has not told of others.
func TestDeadlinesAreInOrderWhenTheTimerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Goroutines()).NewWorker(t.Context())
		var order []int
		start := clock()
		for _, at := range []int{10, 30} {
			_, err := w.ScheduleAfter(time.Duration(at), func(context.Context) { order = append(order, at) })
			require.NoError(t, err)
		}
		w.timer.Stop()
		time.Sleep(100 * time.Nanosecond)
		n := &node{w: w, at: start + 20, timed: true, task: func(context.Context) { order = append(order, 20) }}
		w.mu.Lock()
		require.NoError(t, w.admit(n))
		w.timerFires() // now it comes
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, []int{10, 20, 30}, order)
	})
}

func TestAnObserverIsToldOfTheWaitFromTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		w := New(Goroutines()).NewWorker(t.Context(), Observe(func(e Event) { waits = append(waits, e.Queued) }))
		for range 3 * chunkSize { // more than one chunk
			_, err := w.ScheduleAfter(time.Hour, func(context.Context) {})
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Hour)
		require.NoError(t, w.Wait(t.Context()))
		require.Len(t, waits, 3*chunkSize)
		require.Zero(t, slices.Max(waits))
	})
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
		require.Len(t, w.blocked, 1)
		cancel()
		synctest.Wait()
		require.Empty(t, w.blocked)
		require.Zero(t, events)
		close(gate)
		require.NoError(t, w.Drain(t.Context()))
		require.Equal(t, 2, events)
		require.Equal(t, uint64(2), w.Stats().Scheduled)
	})
}
