package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// A memCase schedules f on a worker and has it come to its end. The value that it returns is held
// while the garbage collector runs.
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

// A minute of collections: freed is told of on another goroutine, which may take its time.
const aMinute = 60_000

// collected reports whether freed is told of within so many collections, of a millisecond or more each.
func collected(freed *atomic.Bool, collections int) bool {
	for range collections {
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
			require.True(t, collected(freed, aMinute))
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
	require.False(t, collected(freed, 50))
	runtime.KeepAlive(held)
}
