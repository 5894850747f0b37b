package scheduler_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// memSlack is how much larger than at the start the heap may be, in bytes. The
// planted leak below is found with it.
const memSlack = 1 << 20

// memGrowth returns how much larger the heap is after f, in bytes.
func memGrowth(f func()) int64 {
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what has a finalizer or sits in a pool goes in the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	f()
	return heap() - before
}

// behind returns a worker whose running task blocks until the test is over.
func behind(t *testing.T, opts ...scheduler.WorkerOption) *scheduler.ExecutorWorker {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context(), opts...)
	gate, running := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(gate) })
	require.NoError(t, w.Post(func() { close(running); <-gate }))
	<-running
	return w
}

func TestAHundredThousandDelayedAndCancelledLeaveNothing(t *testing.T) {
	const count = 100_000
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	cancel := map[string]func([]scheduler.Task){
		"one by one": func(tasks []scheduler.Task) {
			rand.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
			for _, task := range tasks {
				task.Cancel()
			}
		},
		"all at once": func([]scheduler.Task) { w.CancelPending() },
		"all but one": func(tasks []scheduler.Task) {
			for _, task := range tasks[1:] {
				task.Cancel()
			}
		},
	}
	for name, cancel := range cancel {
		t.Run(name, func(t *testing.T) {
			grown := memGrowth(func() {
				tasks := make([]scheduler.Task, count)
				for i := range tasks {
					tasks[i], _ = w.ScheduleAfter(24*time.Hour+time.Duration(i), nothing)
				}
				cancel(tasks)
			})
			require.Less(t, grown, int64(memSlack/4))
			w.CancelPending()
		})
	}
	runtime.KeepAlive(w)
}

func TestAMillionScheduledAndCancelledBehindOneThatBlocksLeaveNothing(t *testing.T) {
	for name, keep := range map[string]int{"the last": 0, "the last but one": 1, "the hundredth": 100} {
		t.Run(name, func(t *testing.T) {
			w := behind(t)
			grown := memGrowth(func() {
				var tasks []scheduler.Task
				for range 1_000_000 / scheduler.RaceFactor {
					task, _ := w.Schedule(nothing)
					if tasks = append(tasks, task); len(tasks) > keep {
						tasks[0].Cancel()
						tasks = tasks[1:]
					}
				}
			})
			require.Less(t, grown, int64(memSlack/4))
			require.Equal(t, keep, w.Len())
		})
	}
}

func TestAMillionDroppedBehindOneThatBlocksLeaveNothing(t *testing.T) {
	for name, full := range map[string]scheduler.Full{"oldest": scheduler.DropOldest, "newest": scheduler.DropNewest} {
		t.Run(name, func(t *testing.T) {
			w := behind(t, scheduler.Capacity(10, full))
			grown := memGrowth(func() {
				for range 1_000_000 / scheduler.RaceFactor {
					_ = w.Post(func() {})
				}
			})
			require.Less(t, grown, int64(memSlack/4))
			require.Equal(t, 10, w.Len())
		})
	}
}

func TestATaskThatSchedulesItselfLeavesNothing(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	left := 1_000_000 / scheduler.RaceFactor
	var again func(context.Context)
	again = func(context.Context) {
		if left--; left > 0 {
			_, _ = w.Schedule(again)
		}
	}
	grown := memGrowth(func() {
		_, _ = w.Schedule(again)
		require.NoError(t, w.Wait(t.Context()))
	})
	require.Less(t, grown, int64(memSlack/4))
	require.Zero(t, left)
}

func TestWorkersThatHaveEndedLeaveNothing(t *testing.T) {
	end := map[string]func(*scheduler.ExecutorWorker){
		"closed":  func(w *scheduler.ExecutorWorker) { _ = w.Close() },
		"drained": func(w *scheduler.ExecutorWorker) { _ = w.Drain(context.Background()) },
		"closed at work": func(w *scheduler.ExecutorWorker) {
			_ = w.Post(func() {})
			_, _ = w.ScheduleAfter(time.Hour, nothing)
			_, _ = w.ScheduleEvery(0, time.Hour, nothing)
			_ = w.Close()
			_ = w.Wait(context.Background())
		},
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := scheduler.New(scheduler.Goroutines())
			round := func() {
				for range 5_000 { // not fewer with the race detector: the leak must show
					end(s.NewWorker(ctx))
				}
				require.Eventually(t, func() bool { return s.Stats().Workers == 0 }, time.Minute, time.Millisecond)
			}
			round() // the runtime keeps goroutines that have ended, for the next
			require.Less(t, memGrowth(round), int64(memSlack))
			runtime.KeepAlive(s)
		})
	}
}

func TestAnIdleWorkerHoldsNoGoroutineAndNoPlaceInThePool(t *testing.T) {
	var submitted, inside atomic.Int64
	s := scheduler.New(scheduler.ExecutorFunc(func(task func()) error {
		submitted.Add(1)
		inside.Add(1)
		go func() {
			defer inside.Add(-1)
			task()
		}()
		return nil
	}))
	before := runtime.NumGoroutine()
	for range 1_000 / scheduler.RaceFactor {
		w := s.NewWorker(t.Context())
		require.NoError(t, w.Post(func() {}))
		task, _ := w.ScheduleAfter(time.Hour, nothing)
		every, _ := w.ScheduleEvery(time.Hour, time.Hour, nothing)
		require.NoError(t, w.Wait(t.Context()))
		require.True(t, task.Cancel())
		require.True(t, every.Cancel())
	}
	for range 10_000 { // goroutines that have done their last thing are counted for a moment
		if inside.Load() == 0 && runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	require.LessOrEqual(t, submitted.Load(), int64(1_000/scheduler.RaceFactor))
	require.Zero(t, s.Stats().Ready)
}

// TestAPlantedMemoryLeakIsFound shows that the check can fail.
func TestAPlantedMemoryLeakIsFound(t *testing.T) {
	w := behind(t)
	grown := memGrowth(func() {
		for range 40_000 { // not fewer with the race detector: the leak must show
			_, _ = w.Schedule(nothing)
		}
	})
	require.Greater(t, grown, int64(memSlack))
}

// TestAClosedWorkerLeavesNothingBehindInItsScope, however it was closed, in a
// scope that lives on.
func TestAClosedWorkerLeavesNothingBehindInItsScope(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, w *scheduler.ExecutorWorker){
		"closed":  func(_ context.Context, w *scheduler.ExecutorWorker) { _ = w.Close() },
		"drained": func(ctx context.Context, w *scheduler.ExecutorWorker) { _ = w.Drain(ctx) },
		"used":    func(ctx context.Context, w *scheduler.ExecutorWorker) { _ = w.Post(func() {}); _ = w.Drain(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				s := scheduler.New(scheduler.Goroutines())
				round := func() {
					for range 20_000 { // at 13 B each the leak would show
						w := s.NewWorker(ctx)
						end(ctx, w)
					}
				}
				round() // the runtime keeps goroutines that have ended, for the next
				require.Less(t, memGrowth(round), int64(memSlack/4))
				runtime.KeepAlive(s)
				return nil
			}))
		})
	}
}
