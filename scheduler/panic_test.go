package scheduler_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

const planted = "planted"

// bad are the ways in which a task may end badly.
var bad = map[string]struct {
	end   func()
	state scheduler.State
}{
	"panic":             {func() { panic(planted) }, scheduler.Panicked},
	"nil panic":         {func() { panic(nil) }, scheduler.Panicked},
	"Goexit":            {runtime.Goexit, scheduler.Exited},
	"nested panic":      {func() { defer func() { panic(planted) }(); panic("first") }, scheduler.Panicked},
	"Goexit in a panic": {func() { defer runtime.Goexit(); panic("first") }, scheduler.Exited},
}

// ways are those in which f is scheduled.
var ways = map[string]func(w *scheduler.ExecutorWorker, f func()) (scheduler.Task, error){
	"Post": func(w *scheduler.ExecutorWorker, f func()) (scheduler.Task, error) {
		return scheduler.Task{}, w.Post(f)
	},
	"Schedule": func(w *scheduler.ExecutorWorker, f func()) (scheduler.Task, error) {
		return w.Schedule(func(context.Context) { f() })
	},
	"ScheduleAfter": func(w *scheduler.ExecutorWorker, f func()) (scheduler.Task, error) {
		return w.ScheduleAfter(time.Second, func(context.Context) { f() })
	},
	"ScheduleEvery": func(w *scheduler.ExecutorWorker, f func()) (scheduler.Task, error) {
		return w.ScheduleEvery(0, 0, func(context.Context) { f() })
	},
}

// surviving makes pools recover panics, so that the test goes on after one.
func surviving(t *testing.T, f func(t *testing.T, pool scheduler.Executor)) {
	t.Helper()
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) { f(t, recovering(pool)) })
}

// TestATaskThatEndsBadlyStopsNobody: all others run once, in order, before and
// after.
func TestATaskThatEndsBadlyStopsNobody(t *testing.T) {
	for name, test := range bad {
		for way, schedule := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				surviving(t, func(t *testing.T, pool scheduler.Executor) {
					var told outcomes
					w := scheduler.New(pool, told.observe()).NewWorker(t.Context())
					var got []int
					for i := range 10 {
						require.NoError(t, w.Post(func() { got = append(got, i) }))
						task, err := schedule(w, test.end)
						require.NoError(t, err)
						if i%3 == 0 {
							time.Sleep(2 * time.Second)
							synctest.Wait()
							if way != "Post" {
								require.Equal(t, test.state, task.State())
							}
						}
					}
					time.Sleep(2 * time.Second)
					require.NoError(t, w.Wait(t.Context()))
					require.Equal(t, upTo(10), got)
					st := addUp(t, w)
					require.EqualValues(t, 10, st.Panicked+st.Exited)
					synctest.Wait()
					require.EqualValues(t, 10, told[test.state].Load())
					idle(t, w)
				})
			})
		}
	}
}

// TestMorePanicsThanThePoolHasGoroutines.
func TestMorePanicsThanThePoolHasGoroutines(t *testing.T) {
	surviving(t, func(t *testing.T, pool scheduler.Executor) {
		s := scheduler.New(pool)
		var workers []*scheduler.ExecutorWorker
		for range 20 {
			w := s.NewWorker(t.Context())
			workers = append(workers, w)
			for range 5 {
				require.NoError(t, w.Post(func() { panic(planted) }))
				require.NoError(t, w.Post(runtime.Goexit))
			}
			require.NoError(t, w.Post(func() {}))
		}
		for _, w := range workers {
			idle(t, w)
			require.EqualValues(t, 1, w.Stats().Done)
		}
	})
}

// TestAPanicContinues and comes out of the pool's task, with Inline out of Post,
// when the worker is in order again.
func TestAPanicContinues(t *testing.T) {
	w := scheduler.New(scheduler.Inline()).NewWorker(t.Context())
	require.PanicsWithValue(t, planted, func() { _ = w.Post(func() { panic(planted) }) })
	require.NoError(t, w.Wait(t.Context()))
	ran := false
	require.NoError(t, w.Post(func() { ran = true }))
	require.True(t, ran)

	m := &manual{}
	w = scheduler.New(m).NewWorker(t.Context())
	require.NoError(t, w.Post(func() { panic(planted) }))
	require.PanicsWithValue(t, planted, func() { m.step() })
	require.NoError(t, w.Wait(t.Context()))
	require.EqualValues(t, 1, addUp(t, w).Panicked)
	idle(t, w)
}

// TestRecoverPanics tells each panic once, and the goroutine goes on.
func TestRecoverPanics(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		var told []*async.PanicError
		w := scheduler.New(pool, scheduler.Name("job"), scheduler.RecoverPanics(func(e *async.PanicError) { told = append(told, e) })).NewWorker(t.Context())
		var got []int
		for i := range 20 {
			require.NoError(t, w.Post(func() { plant(i % 4) }))
			require.NoError(t, w.Post(func() { got = append(got, i) }))
		}
		idle(t, w)
		require.Equal(t, upTo(20), got)
		require.Len(t, told, 5)
		for _, e := range told {
			require.Equal(t, planted, e.Value)
			require.Equal(t, "job", e.Task)
			require.Contains(t, string(e.Stack), "plant(")
		}
		require.EqualValues(t, 5, w.Stats().Panicked)
	})
}

//go:noinline
func plant(i int) {
	if i == 0 {
		panic(planted)
	}
}

// TestRecoverPanicsLeavesGoexitAlone.
func TestRecoverPanicsLeavesGoexitAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines(), scheduler.RecoverPanics(func(e *async.PanicError) { t.Error(e) })).NewWorker(t.Context())
		require.NoError(t, w.Post(runtime.Goexit))
		require.NoError(t, w.Post(func() {}))
		idle(t, w)
		require.EqualValues(t, 1, w.Stats().Exited)
		require.EqualValues(t, 1, w.Stats().Done)
	})
}

// TestAHandlerThatEndsBadlyWedgesNobody.
func TestAHandlerThatEndsBadlyWedgesNobody(t *testing.T) {
	for name, test := range bad {
		t.Run(name, func(t *testing.T) {
			surviving(t, func(t *testing.T, pool scheduler.Executor) {
				calls := 0
				w := scheduler.New(pool, scheduler.RecoverPanics(func(*async.PanicError) { calls++; test.end() })).NewWorker(t.Context())
				var got []int
				for i := range 20 {
					require.NoError(t, w.Post(func() { got = append(got, i); plant(i % 4) }))
				}
				idle(t, w)
				require.Equal(t, upTo(20), got)
				require.Equal(t, 5, calls)
			})
		})
	}
}

// TestCloseOnPanic cancels what is pending, with a handler or without.
func TestCloseOnPanic(t *testing.T) {
	for _, handled := range []bool{false, true} {
		surviving(t, func(t *testing.T, pool scheduler.Executor) {
			opts := []scheduler.Option{scheduler.CloseOnPanic()}
			told := 0
			if handled {
				opts = append(opts, scheduler.RecoverPanics(func(*async.PanicError) { told++ }))
			}
			s := scheduler.New(pool, opts...)
			w := s.NewWorker(t.Context())
			var behind scheduler.Task
			require.NoError(t, w.Post(func() {
				var err error
				behind, err = w.Schedule(func(context.Context) { t.Error("it ran") })
				require.NoError(t, err)
				panic(planted)
			}))
			require.NoError(t, w.Wait(t.Context()))
			synctest.Wait()
			require.True(t, w.Closed())
			require.Equal(t, scheduler.Cancelled, behind.State())
			require.Equal(t, scheduler.ErrClosed, w.Post(func() {}))
			require.Zero(t, s.Stats().Workers)
			if handled {
				require.Equal(t, 1, told)
			}
			st := addUp(t, w)
			require.EqualValues(t, 1, st.Panicked)

			w = s.NewWorker(t.Context())
			require.NoError(t, w.Post(runtime.Goexit))
			require.NoError(t, w.Post(func() {}))
			idle(t, w) // Goexit is no panic
			require.EqualValues(t, 1, w.Stats().Done)
		})
	}
}

// TestAPanicInTheThirdTick ends that periodic task and no other.
func TestAPanicInTheThirdTick(t *testing.T) {
	surviving(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		ticks, others := 0, 0
		task, err := w.ScheduleEvery(time.Second, time.Second, func(context.Context) {
			if ticks++; ticks == 3 {
				panic(planted)
			}
		})
		require.NoError(t, err)
		other, err := w.ScheduleEvery(time.Second, time.Second, func(context.Context) { others++ })
		require.NoError(t, err)
		time.Sleep(10*time.Second + time.Millisecond)
		require.Equal(t, scheduler.Panicked, task.State())
		require.Equal(t, scheduler.Pending, other.State())
		other.Cancel()
		idle(t, w)
		require.Equal(t, 3, ticks)
		require.Equal(t, 10, others)
		require.EqualValues(t, 12, w.Stats().Ticks, "the third has not returned")
	})
}

// TestFailNowInATask, which is Goexit, leaves the worker usable.
func TestFailNowInATask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Inline()).NewWorker(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Post(func() { _ = w.Post(func() {}); runtime.Goexit() }) })
		wg.Wait()
		idle(t, w)
		require.EqualValues(t, 1, w.Stats().Done)
		require.EqualValues(t, 1, w.Stats().Exited)
	})
}
