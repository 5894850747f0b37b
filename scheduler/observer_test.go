package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// TestAnObserverThatEndsBadlyWedgesNobody.
func TestAnObserverThatEndsBadlyWedgesNobody(t *testing.T) {
	for name, test := range bad {
		t.Run(name, func(t *testing.T) {
			surviving(t, func(t *testing.T, pool scheduler.Executor) {
				w := scheduler.New(pool, scheduler.Observe(func(scheduler.Event) { test.end() })).NewWorker(t.Context())
				var got []int
				for i := range 20 {
					require.NoError(t, w.Post(func() { got = append(got, i) }))
				}
				idle(t, w)
				require.Equal(t, upTo(20), got)
				require.EqualValues(t, 20, w.Stats().Done)
			})
		})
	}
}

// TestAnObserverThatPanicsWhenATaskHasEndedBadlyWedgesNobody, whichever way
// that was.
func TestAnObserverThatPanicsWhenATaskHasEndedBadlyWedgesNobody(t *testing.T) {
	for name, test := range map[string]struct {
		at   scheduler.State
		opts []scheduler.WorkerOption
		use  func(w *scheduler.ExecutorWorker)
	}{
		"it panicked": {at: scheduler.Panicked, use: func(w *scheduler.ExecutorWorker) {
			_ = w.Post(func() { panic("task") })
		}},
		"it closed the worker": {at: scheduler.Cancelled, opts: []scheduler.WorkerOption{scheduler.CloseOnPanic()}, use: func(w *scheduler.ExecutorWorker) {
			_ = w.Post(func() { _ = w.Post(func() {}); panic("task") })
		}},
		"it was periodic and cancelled itself": {at: scheduler.Cancelled, use: func(w *scheduler.ExecutorWorker) {
			var task scheduler.Task
			gate := make(chan struct{})
			task, _ = w.ScheduleEvery(0, time.Second, func(context.Context) { <-gate; task.Cancel() })
			close(gate)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				opts := append(test.opts, scheduler.Observe(func(e scheduler.Event) {
					if e.Outcome == test.at {
						panic("observer")
					}
				}))
				w := scheduler.New(recovering(scheduler.Goroutines())).NewWorker(t.Context(), opts...)
				test.use(w)
				ran := false
				err := w.Post(func() { ran = true })
				require.NoError(t, w.Wait(t.Context()))
				require.Equal(t, err == nil && len(test.opts) == 0, ran)
			})
		})
	}
}

// TestTheEventOfAPanicTellsHowLongItRan.
func TestTheEventOfAPanicTellsHowLongItRan(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var e scheduler.Event
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context(), scheduler.RecoverPanics(func(*async.PanicError) {}), scheduler.Observe(func(x scheduler.Event) { e = x }))
		_ = w.Post(func() { time.Sleep(time.Second); panic(1) })
		_ = w.Drain(t.Context())
		require.Equal(t, time.Second, e.Ran)
	})
}
