package scheduler_test

import (
	"context"
	"errors"
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

// A memCase schedules f on a worker and has it come to its end. What it returns
// is held while the garbage collector runs.
type memCase struct {
	name string
	run  func(t *testing.T, f func(context.Context)) (held any)
}

var memCases = []memCase{
	{"done", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		task, err := w.Schedule(f)
		require.NoError(t, err)
		require.NoError(t, w.Wait(t.Context()))
		return []any{w, task}
	}},
	{"done, the next one of the batch blocks", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		gate, running := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() { close(gate) })
		go1, hold := make(chan struct{}), func() { close(running); <-gate }
		require.NoError(t, w.Post(func() { <-go1 })) // so that the others are one batch
		task, err := w.Schedule(f)
		require.NoError(t, err)
		require.NoError(t, w.Post(func() { f(nil) }))
		require.NoError(t, w.Post(hold))
		close(go1)
		<-running
		return []any{w, task}
	}},
	{"cancelled behind one that blocks", func(t *testing.T, f func(context.Context)) any {
		w := behind(t)
		task, _ := w.Schedule(f)
		require.True(t, task.Cancel())
		return []any{w, task}
	}},
	{"cancelled in the batch of one that blocks", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		gate, running, begin := make(chan struct{}), make(chan struct{}), make(chan struct{})
		t.Cleanup(func() { close(gate) })
		require.NoError(t, w.Post(func() { <-begin }))
		require.NoError(t, w.Post(func() { close(running); <-gate }))
		task, _ := w.Schedule(f)
		close(begin)
		<-running
		require.True(t, task.Cancel())
		return []any{w, task}
	}},
	{"cancelled by CancelPending in the batch of one that blocks", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		gate, running, begin := make(chan struct{}), make(chan struct{}), make(chan struct{})
		t.Cleanup(func() { close(gate) })
		require.NoError(t, w.Post(func() { <-begin }))
		require.NoError(t, w.Post(func() { close(running); <-gate }))
		task, _ := w.Schedule(f)
		require.NoError(t, w.Post(func() { f(nil) }))
		close(begin)
		<-running
		require.Equal(t, 2, w.CancelPending())
		return []any{w, task}
	}},
	{"cancelled by CancelPending", func(t *testing.T, f func(context.Context)) any {
		w := behind(t)
		task, _ := w.Schedule(f)
		late, _ := w.ScheduleAfter(time.Hour, f)
		require.NoError(t, w.Post(func() { f(nil) }))
		require.Equal(t, 3, w.CancelPending())
		return []any{w, task, late}
	}},
	{"cancelled by Close", func(t *testing.T, f func(context.Context)) any {
		w := behind(t)
		task, _ := w.Schedule(f)
		late, _ := w.ScheduleAfter(time.Hour, f)
		require.NoError(t, w.Post(func() { f(nil) }))
		require.NoError(t, w.Close())
		return []any{w, task, late}
	}},
	{"rejected by the pool", func(t *testing.T, f func(context.Context)) any {
		refuse := scheduler.ExecutorFunc(func(func()) error { return errors.New("no") })
		w := scheduler.New(refuse).NewWorker(t.Context())
		task, _ := w.Schedule(f)
		require.NoError(t, w.Post(func() { f(nil) }))
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, scheduler.Rejected, task.State())
		return []any{w, task}
	}},
	{"rejected by the end of the pool", func(t *testing.T, f func(context.Context)) any {
		drop := scheduler.ExecutorFunc(func(func()) error { return nil })
		pool, end := context.WithCancel(t.Context())
		w := scheduler.New(drop, scheduler.PoolContext(pool)).NewWorker(t.Context())
		task, _ := w.Schedule(f)
		require.NoError(t, w.Post(func() { f(nil) }))
		end()
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, scheduler.Rejected, task.State())
		return []any{w, task}
	}},
	{"dropped as the oldest", func(t *testing.T, f func(context.Context)) any {
		w := behind(t, scheduler.Capacity(1, scheduler.DropOldest))
		task, _ := w.Schedule(f)
		_, _ = w.Schedule(nothing)
		require.Equal(t, scheduler.Rejected, task.State())
		return []any{w, task}
	}},
	{"dropped as the newest", func(t *testing.T, f func(context.Context)) any {
		w := behind(t, scheduler.Capacity(1, scheduler.DropNewest))
		_, _ = w.Schedule(nothing)
		task, _ := w.Schedule(f)
		require.Equal(t, scheduler.Rejected, task.State())
		return []any{w, task}
	}},
	{"delayed and done", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		task, _ := w.ScheduleAfter(time.Microsecond, f)
		for task.State() != scheduler.Done {
			runtime.Gosched()
		}
		return []any{w, task}
	}},
	{"delayed and cancelled", func(t *testing.T, f func(context.Context)) any {
		w := behind(t)
		task, _ := w.ScheduleAfter(time.Hour, f)
		require.True(t, task.Cancel())
		return []any{w, task}
	}},
	{"periodic and cancelled between two runs", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		task, _ := w.ScheduleEvery(0, time.Hour, f)
		require.NoError(t, w.Wait(t.Context()))
		require.True(t, task.Cancel())
		return []any{w, task}
	}},
	{"periodic and cancelled by itself", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		var task scheduler.Task
		ready := make(chan struct{})
		task, _ = w.ScheduleEvery(0, time.Hour, func(ctx context.Context) { <-ready; f(ctx); task.Cancel() })
		close(ready)
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, scheduler.Cancelled, task.State())
		return []any{w, task}
	}},
	{"panicked", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context(), scheduler.RecoverPanics(func(*async.PanicError) {}))
		task, _ := w.Schedule(func(ctx context.Context) { f(ctx); panic("on purpose") })
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, scheduler.Panicked, task.State())
		return []any{w, task}
	}},
	{"exited", func(t *testing.T, f func(context.Context)) any {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		task, _ := w.ScheduleEvery(0, 0, func(ctx context.Context) { f(ctx); runtime.Goexit() })
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, scheduler.Exited, task.State())
		return []any{w, task}
	}},
	{"a future that was cancelled", func(t *testing.T, f func(context.Context)) any {
		w := behind(t)
		future := scheduler.Submit(w, func(ctx context.Context) (int, error) { f(ctx); return 0, nil })
		future.Cancel(errors.New("enough"))
		return w // a future keeps its function itself
	}},
}

// planted runs c with a function that has captured something, and tells
// whether that was collected. Nothing of it may be in the caller's frame.
//
//go:noinline
func (c memCase) planted(t *testing.T) (held any, freed *atomic.Bool) {
	load := new([64 << 10]byte)
	freed = new(atomic.Bool)
	runtime.AddCleanup(load, func(b *atomic.Bool) { b.Store(true) }, freed)
	return c.run(t, func(context.Context) { load[7]++ }), freed
}

// collected reports whether freed is told of within a few collections.
func collected(freed *atomic.Bool) bool {
	for range 50 {
		if runtime.GC(); freed.Load() {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return freed.Load()
}

func TestWhatATaskHasCapturedIsFreedWhenItHasEnded(t *testing.T) {
	for _, c := range memCases {
		t.Run(c.name, func(t *testing.T) {
			held, freed := c.planted(t)
			require.True(t, collected(freed))
			runtime.KeepAlive(held)
		})
	}
}

// TestAPlantedCaptureIsFound shows that the check can fail.
func TestAPlantedCaptureIsFound(t *testing.T) {
	c := memCase{"pending", func(t *testing.T, f func(context.Context)) any {
		w := behind(t)
		task, _ := w.Schedule(f)
		return []any{w, task}
	}}
	held, freed := c.planted(t)
	require.False(t, collected(freed))
	runtime.KeepAlive(held)
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
				for range 1_000_000 / scheduler.ModelFactor {
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
				for range 1_000_000 / scheduler.ModelFactor {
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
	left := 1_000_000 / scheduler.ModelFactor
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
				require.Eventually(t, func() bool { return s.Stats().Workers == 0 }, 10*time.Second, time.Millisecond)
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
	for range 1_000 / scheduler.ModelFactor {
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
	require.LessOrEqual(t, submitted.Load(), int64(1_000/scheduler.ModelFactor))
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
