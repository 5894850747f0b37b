package scheduler

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
			require.True(t, w.alarm.armed)
			end(w, task)
			w.mu.Lock()
			defer w.mu.Unlock()
			require.False(t, w.alarm.armed)
			require.False(t, w.alarm.timer.Stop())
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
		w.alarm.timer.Stop()
		time.Sleep(100 * time.Nanosecond)
		n := &node{q: &w.q, at: start + 20, timed: true, task: func(context.Context) { order = append(order, 20) }}
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
