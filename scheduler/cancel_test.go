package scheduler_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// TestACancelledPendingTaskNeverStarts, wherever it stands in the queue.
func TestACancelledPendingTaskNeverStarts(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		const n = 500
		var want, got []int
		ended := make(chan struct{})
		require.NoError(t, w.Post(func() { // some are in the batch of this one
			defer close(ended)
			var tasks []scheduler.Task
			for i := range n {
				task, err := w.Schedule(func(context.Context) { got = append(got, i) })
				require.NoError(t, err)
				tasks = append(tasks, task)
			}
			require.Equal(t, n, w.Len())
			for i, task := range tasks {
				if i%5 == 0 {
					want = append(want, i)
					continue
				}
				require.Equal(t, scheduler.Pending, task.State())
				require.True(t, task.Cancel())
				require.False(t, task.Cancel(), "a second time")
				require.Equal(t, scheduler.Cancelled, task.State())
			}
			require.Equal(t, n/5, w.Len(), "at once")
			addUp(t, w)
		}))
		<-ended
		idle(t, w)
		require.Equal(t, want, got)
		require.EqualValues(t, n-n/5, w.Stats().Cancelled)
	})
}

// TestCancelFromTheTaskBefore, which is in one batch with it.
func TestCancelFromTheTaskBefore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := &manual{}
		w := scheduler.New(m).NewWorker(t.Context())
		var tasks []scheduler.Task
		ran := 0
		for i := range 10 {
			task, err := w.Schedule(func(context.Context) {
				ran++
				if i%2 == 0 {
					require.True(t, tasks[i+1].Cancel())
					require.Equal(t, 8-i, w.Len())
					addUp(t, w)
				}
			})
			require.NoError(t, err)
			tasks = append(tasks, task)
		}
		m.run()
		require.Equal(t, 5, ran)
		idle(t, w)
	})
}

// TestCancelOfARunningTask cancels its context, and the next waits until it has
// returned.
func TestCancelOfARunningTask(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		handle := make(chan scheduler.Task, 1)
		returned := false
		go func() { // with Inline a task runs in the call
			err := w.Post(func() {
				task, err := w.Schedule(func(ctx context.Context) {
					<-ctx.Done()
					require.Equal(t, scheduler.ErrCancelled, context.Cause(ctx))
					time.Sleep(time.Second)
					returned = true
				})
				require.NoError(t, err)
				handle <- task
			})
			require.NoError(t, err)
		}()
		task := <-handle
		synctest.Wait()
		time.Sleep(time.Millisecond) // of a chaotic pool
		require.Equal(t, scheduler.Running, task.State())
		require.False(t, task.Cancel())
		require.False(t, task.Cancel(), "a second time")
		require.NoError(t, w.Post(func() { require.True(t, returned) }))
		idle(t, w)
		require.Equal(t, scheduler.Done, task.State())
		require.False(t, task.Cancel())
	})
}

func TestATaskMayCancelItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		handle := make(chan scheduler.Task, 1)
		task, err := w.Schedule(func(ctx context.Context) {
			require.False(t, (<-handle).Cancel())
			require.ErrorIs(t, context.Cause(ctx), scheduler.ErrCancelled)
		})
		require.NoError(t, err)
		handle <- task
		idle(t, w)
		require.Equal(t, scheduler.Done, task.State())
		require.Zero(t, w.Stats().Cancelled)
	})
}

func TestAHandleIsTrueForEver(t *testing.T) {
	w := scheduler.New(scheduler.Inline()).NewWorker(t.Context())
	var tasks []scheduler.Task
	for range 1000 {
		task, err := w.Schedule(nothing)
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		require.Equal(t, scheduler.Done, task.State())
		require.False(t, task.Cancel())
	}
	require.NotEqual(t, tasks[0], tasks[1])
	var zero scheduler.Task
	require.Equal(t, scheduler.Done, zero.State())
	require.False(t, zero.Cancel())
	idle(t, w)
}

// TestCancelAndStartRace: one side wins, and everybody sees who.
func TestCancelAndStartRace(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool, scheduler.Batch(7)).NewWorker(t.Context())
		const n = 300
		var ran, cancelled [n]atomic.Int32
		tasks := make(chan int, n)
		var handles [n]scheduler.Task
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for i := range tasks {
					if handles[i].Cancel() {
						cancelled[i].Add(1)
					}
				}
			})
		}
		for i := range n {
			var err error
			handles[i], err = w.Schedule(func(context.Context) { ran[i].Add(1) })
			require.NoError(t, err)
			tasks <- i
			tasks <- i // who cancels twice finds it cancelled
		}
		close(tasks)
		wg.Wait()
		idle(t, w)
		for i := range n {
			require.EqualValues(t, 1, ran[i].Load()+cancelled[i].Load())
			require.Equal(t, cancelled[i].Load() == 1, handles[i].State() == scheduler.Cancelled)
		}
	})
}

// TestMassCancelLeavesAPrefix of what was scheduled, however it comes.
func TestMassCancelLeavesAPrefix(t *testing.T) {
	for name, test := range map[string]struct {
		cancel func(w *scheduler.ExecutorWorker)
		pieces int // that may be missing in the middle: more is scheduled meanwhile
	}{
		"CancelPending": {func(w *scheduler.ExecutorWorker) { w.CancelPending() }, 1},
		"twice":         {func(w *scheduler.ExecutorWorker) { w.CancelPending(); w.CancelPending() }, 2},
		"Close":         {func(w *scheduler.ExecutorWorker) { _ = w.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
				for range 20 {
					w := scheduler.New(pool).NewWorker(t.Context())
					var got []int
					const n = 300
					goOn := make(chan struct{})
					go func() {
						<-goOn
						test.cancel(w)
					}()
					for i := range n {
						if i == 100 {
							close(goOn)
						}
						run := func() { got = append(got, i); runtime.Gosched() }
						if i%3 == 0 {
							_, _ = w.Schedule(func(context.Context) { run() })
						} else {
							_ = w.Post(run)
						}
					}
					idle(t, w)
					gaps := 0
					for i, v := range got {
						if i > 0 && v != got[i-1]+1 || i == 0 && v > 0 {
							gaps++
						}
					}
					require.LessOrEqual(t, gaps, test.pieces, "%v", got)
					require.True(t, slices.IsSorted(got))
					require.EqualValues(t, len(got), w.Stats().Done)
				}
			})
		})
	}
}

// TestCancelPendingTellsHowMany and the worker goes on.
func TestCancelPendingTellsHowMany(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		ended := make(chan struct{})
		require.NoError(t, w.Post(func() {
			defer close(ended)
			require.Zero(t, w.CancelPending())
			for range 100 {
				require.NoError(t, w.Post(func() { t.Error("it ran") }))
			}
			late, err := w.ScheduleAfter(time.Hour, nothing)
			require.NoError(t, err)
			every, err := w.ScheduleEvery(time.Hour, time.Hour, nothing)
			require.NoError(t, err)
			require.Equal(t, 102, w.Len())
			require.Equal(t, 102, w.CancelPending())
			require.Zero(t, w.Len())
			require.Equal(t, scheduler.Cancelled, late.State())
			require.Equal(t, scheduler.Cancelled, every.State())
		}))
		<-ended
		again := false
		require.NoError(t, w.Post(func() { again = true }))
		idle(t, w)
		require.True(t, again)
	})
}

// TestWhatATaskCapturedIsNotKept once it has run or was cancelled, while its
// handle is held and the worker is busy.
func TestWhatATaskCapturedIsNotKept(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	capture := func(d time.Duration, cancel bool) (scheduler.Task, weak.Pointer[[64]int]) {
		x := new([64]int)
		task, err := w.ScheduleAfter(d, func(context.Context) { x[0]++ })
		require.NoError(t, err)
		if cancel {
			require.True(t, task.Cancel())
		}
		return task, weak.Make(x)
	}
	ranTask, ran := capture(0, false)
	require.NoError(t, w.Wait(t.Context()))
	release := blocked(t, w)
	queuedTask, queued := capture(0, true)
	delayedTask, delayed := capture(time.Hour, true)
	keptTask, kept := capture(time.Hour, false)
	gone := func(x weak.Pointer[[64]int]) bool { // a goroutine that is on its way out of the task may still have it
		for end := time.Now().Add(time.Minute); x.Value() != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
			runtime.GC()
		}
		return x.Value() == nil
	}
	require.True(t, gone(ran))
	require.True(t, gone(queued))
	require.True(t, gone(delayed))
	require.NotNil(t, kept.Value())
	w.CancelPending()
	require.True(t, gone(kept))
	release()
	idle(t, w)
	runtime.KeepAlive([]scheduler.Task{ranTask, queuedTask, delayedTask, keptTask})
}
