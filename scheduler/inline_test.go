package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// TestAPanicBesideASubmittedFunctionIsNotSwallowed: it is of another task, which
// ran on the goroutine of who submitted.
func TestAPanicBesideASubmittedFunctionIsNotSwallowed(t *testing.T) {
	w := scheduler.New(scheduler.Inline()).NewWorker(t.Context())
	var told any
	func() {
		defer func() { told = recover() }()
		_, _ = scheduler.Submit(w, func(context.Context) (int, error) {
			return 1, w.Post(func() { panic("lost") })
		}).Await(t.Context(), 0)
	}()
	require.Equal(t, "lost", told)
}

// TestAPanicOfAnInlineTaskSwallowsNoOutcome of another.
func TestAPanicOfAnInlineTaskSwallowsNoOutcome(t *testing.T) {
	var events []scheduler.State
	w := scheduler.New(scheduler.Inline()).NewWorker(t.Context(), scheduler.Capacity(1, scheduler.DropOldest),
		scheduler.Observe(func(e scheduler.Event) { events = append(events, e.Outcome) }))
	task, err := w.ScheduleAfter(time.Hour, func(context.Context) {})
	require.NoError(t, err)
	func() {
		defer func() { recover() }()
		_ = w.Post(func() { panic("x") })
	}()
	require.Equal(t, scheduler.Rejected, task.State())
	require.Contains(t, events, scheduler.Rejected)
}
