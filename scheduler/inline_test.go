package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
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

// Periodic tasks that are busy for longer than their periods keep nobody who schedules: after
// some runs the rest goes on on a goroutine of its own, in order.
func TestPeriodicInlineTasksKeepNoCaller(t *testing.T) {
	for name, opts := range map[string][]scheduler.EveryOption{"grid": nil, "burst": {scheduler.Burst()}} {
		for _, workers := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := scheduler.New(scheduler.Inline())
					begin, running, runs := time.Now(), 0, make([]int, workers)
					var all []*scheduler.ExecutorWorker
					for i := range workers {
						w := s.NewWorker(t.Context())
						all = append(all, w)
						_, err := w.ScheduleEvery(0, 10*time.Millisecond, func(context.Context) {
							running++
							require.Equal(t, 1, running, "an inline pool has one place")
							if runs[i]++; time.Since(begin) < time.Minute {
								time.Sleep(12 * time.Millisecond / time.Duration(workers))
							}
							running--
						}, opts...)
						require.NoError(t, err)
						require.Less(t, time.Since(begin), 10*time.Second)
					}
					time.Sleep(2 * time.Minute)
					for i, w := range all {
						require.NoError(t, w.Close())
						require.NoError(t, w.Wait(t.Context()))
						require.Greater(t, runs[i], 4_000)
					}
				})
			})
		}
	}
}
