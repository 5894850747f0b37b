package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// full returns a worker whose first task runs until release is called and whose
// queue is full.
func full(t *testing.T, n int, what scheduler.Full, opts ...scheduler.WorkerOption) (w *scheduler.ExecutorWorker, tasks []scheduler.Task, release func()) {
	t.Helper()
	w = scheduler.New(scheduler.Goroutines()).NewWorker(t.Context(), append(opts, scheduler.Capacity(n, what))...)
	release = blocked(t, w)
	for range n {
		task, err := w.Schedule(nothing)
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	require.Equal(t, n, w.Len())
	return w, tasks, release
}

// TestBlockIsFirstComeFirstServed and the order of admission is that of the
// queue.
func TestBlockIsFirstComeFirstServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, _, release := full(t, 2, scheduler.Block)
		var got []int
		var admitted atomic.Int32
		for i := range 10 {
			go func() {
				if err := w.Post(func() { got = append(got, i) }); err != nil {
					t.Error(err)
				}
				admitted.Add(1)
			}()
			synctest.Wait()
		}
		require.Zero(t, admitted.Load())
		require.Equal(t, 2, w.Len())
		require.EqualValues(t, 3, w.Stats().Scheduled, "what waits for room is not accepted yet")
		release()
		synctest.Wait()
		idle(t, w)
		require.Equal(t, upTo(10), got)
	})
}

// TestCancelFreesAPlace at once: for who waits, and for who comes.
func TestCancelFreesAPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, tasks, release := full(t, 2, scheduler.Block)
		in := make(chan int, 3)
		for i := range 3 {
			go func() { _ = w.Post(func() {}); in <- i }()
			synctest.Wait()
		}
		tasks[1].Cancel()
		synctest.Wait()
		require.Len(t, in, 1)
		require.Equal(t, 0, <-in)
		w.CancelPending()
		synctest.Wait()
		require.Len(t, in, 2)
		require.Equal(t, 2, w.Len())
		release()
		idle(t, w)

		w, tasks, release = full(t, 2, scheduler.Fail)
		tasks[0].Cancel()
		require.NoError(t, w.Post(func() {}))
		require.Equal(t, scheduler.ErrFull, w.Post(func() {}))
		release()
		idle(t, w)
	})
}

// TestWhoWaitsForRoomIsToldOfTheEnd.
func TestWhoWaitsForRoomIsToldOfTheEnd(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, w *scheduler.ExecutorWorker){
		"Close": func(_ context.Context, w *scheduler.ExecutorWorker) { _ = w.Close() },
		"Drain": func(ctx context.Context, w *scheduler.ExecutorWorker) { go w.Drain(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, _, release := full(t, 1, scheduler.Block)
				told := make(chan error, 3)
				go func() { told <- w.Post(func() { t.Error("it ran") }) }()
				go func() { _, err := w.Schedule(nothing); told <- err }()
				go func() { _, err := w.ScheduleAfter(time.Hour, nothing); told <- err }()
				synctest.Wait()
				end(t.Context(), w)
				for range 3 {
					require.Equal(t, scheduler.ErrClosed, <-told)
				}
				release()
				idle(t, w)
			})
		})
	}
}

// TestAFullQueueFails or drops, and says so. Delayed and periodic tasks take
// places, too.
func TestAFullQueueFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, _, release := full(t, 2, scheduler.Fail)
		require.Equal(t, scheduler.ErrFull, w.Post(func() {}))
		_, err := w.ScheduleAfter(time.Hour, nothing)
		require.Equal(t, scheduler.ErrFull, err)
		n, err := w.PostAll(slices.Values([]func(){func() {}, func() {}}))
		require.Equal(t, scheduler.ErrFull, err)
		require.Zero(t, n)
		_, err = scheduler.Submit(w, func(context.Context) (int, error) { return 1, nil }).Await(t.Context(), time.Second)
		require.ErrorIs(t, err, scheduler.ErrFull)
		require.Equal(t, 2, w.CancelPending())
		_, err = w.ScheduleAfter(time.Hour, nothing)
		require.NoError(t, err)
		_, err = w.ScheduleEvery(time.Hour, time.Hour, nothing)
		require.NoError(t, err)
		require.Equal(t, scheduler.ErrFull, w.Post(func() {}))
		release()
		idle(t, w)
	})
}

func TestAFullQueueDropsTheOldest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var why error
		w, tasks, release := full(t, 3, scheduler.DropOldest, scheduler.Observe(func(e scheduler.Event) {
			if e.Outcome == scheduler.Rejected {
				why = errors.Join(why, e.Err)
			}
		}))
		tasks[1].Cancel()
		log := ""
		for i := range 4 {
			require.NoError(t, w.Post(func() { log += string(rune('a' + i)) }))
			require.LessOrEqual(t, w.Len(), 3)
		}
		require.Equal(t, scheduler.Rejected, tasks[0].State())
		require.Equal(t, scheduler.Rejected, tasks[2].State())
		require.ErrorIs(t, why, scheduler.ErrFull)
		future := scheduler.Submit(w, func(context.Context) (int, error) { return 1, nil })
		for range 3 {
			require.NoError(t, w.Post(func() { log += "." }))
		}
		_, err := future.Await(t.Context(), time.Second)
		require.ErrorIs(t, err, scheduler.ErrFull)
		release()
		idle(t, w)
		require.Equal(t, "...", log)
	})
}

func TestAFullQueueDropsTheNewest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, tasks, release := full(t, 2, scheduler.DropNewest)
		task, err := w.Schedule(func(context.Context) { t.Error("it ran") })
		require.NoError(t, err)
		require.Equal(t, scheduler.Rejected, task.State())
		require.False(t, task.Cancel())
		require.NoError(t, w.Post(func() { t.Error("it ran") }))
		_, err = scheduler.Submit(w, func(context.Context) (int, error) { return 1, nil }).Await(t.Context(), time.Second)
		require.ErrorIs(t, err, scheduler.ErrFull)
		addUp(t, w)
		release()
		idle(t, w)
		require.Equal(t, scheduler.Done, tasks[1].State())
		require.EqualValues(t, 3, w.Stats().Rejected)
	})
}

// TestDroppingTheOldestKeepsTheQueueSmall: one that is full for long does not
// grow, nor become slower, whether its worker runs something or is not there yet.
func TestDroppingTheOldestKeepsTheQueueSmall(t *testing.T) {
	for _, running := range []bool{true, false} {
		m := &manual{}
		pool := scheduler.Executor(m)
		if running {
			pool = scheduler.Goroutines()
		}
		w := scheduler.New(pool).NewWorker(t.Context(), scheduler.Capacity(1000, scheduler.DropOldest))
		release := m.run
		if running {
			release = blocked(t, w)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ran, n := 0, 1_000_000/scheduler.RaceFactor
		for range n {
			require.NoError(t, w.Post(func() { ran++ }))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20))
		require.Equal(t, 1000, w.Len())
		release()
		idle(t, w)
		require.Equal(t, 1000, ran)
	}
}

// TestProducersOfAFullQueue race, and nothing is lost.
func TestProducersOfAFullQueue(t *testing.T) {
	for _, what := range []scheduler.Full{scheduler.Block, scheduler.Fail, scheduler.DropOldest, scheduler.DropNewest} {
		onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
			w := scheduler.New(pool).NewWorker(t.Context(), scheduler.Capacity(3, what))
			ran, accepted := 0, 0
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 100 {
						if w.Post(func() { ran++; runtime.Gosched() }) == nil {
							mu.Lock()
							accepted++
							mu.Unlock()
						}
						addUp(t, w)
					}
				})
			}
			wg.Wait()
			idle(t, w)
			st := w.Stats()
			require.EqualValues(t, accepted, st.Scheduled)
			require.EqualValues(t, ran, st.Done)
			require.EqualValues(t, accepted, st.Done+st.Rejected)
			if what == scheduler.Block {
				require.Equal(t, 400, ran)
			}
		})
	}
}
