package scheduler_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/scheduler"
)

// TestOneSubmissionForABurst, none while idle, none after the last task.
func TestOneSubmissionForABurst(t *testing.T) {
	for name, pool := range map[string]func(m *manual) scheduler.Executor{
		"with a try": func(m *manual) scheduler.Executor { return m },
		"without":    func(m *manual) scheduler.Executor { return scheduler.ExecutorFunc(m.Execute) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				m := &manual{}
				s := scheduler.New(pool(m))
				w := s.NewWorker(t.Context())
				require.Zero(t, m.len())
				for burst := 1; burst <= 5; burst++ {
					for range 64 {
						require.NoError(t, w.Post(func() {}))
					}
					synctest.Wait()
					require.Equal(t, 1, m.len())
					require.True(t, m.step())
					synctest.Wait()
					require.Zero(t, m.len(), "after the last task")
					require.Equal(t, burst, m.given)
					require.EqualValues(t, burst, s.Stats().Submissions)
				}
				_, err := w.ScheduleAfter(time.Hour, nothing)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				require.Zero(t, m.len(), "nothing is due")
				time.Sleep(time.Hour)
				require.True(t, m.step())
				idle(t, w)
				require.Equal(t, 6, m.given)
			})
		})
	}
}

// TestAnIdleWorkerHasNoTimer: a bubble's time stands still without one.
func TestAnIdleWorkerHasNoTimer(t *testing.T) {
	c := &counting{Executor: scheduler.Goroutines()}
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(c).NewWorker(t.Context())
		task, err := w.ScheduleAfter(time.Minute, nothing)
		require.NoError(t, err)
		every, err := w.ScheduleEvery(time.Second, time.Second, nothing)
		require.NoError(t, err)
		time.Sleep(10*time.Second + 1)
		before := c.given.Load()
		require.EqualValues(t, 10, before)
		require.True(t, task.Cancel())
		require.True(t, every.Cancel())
		time.Sleep(time.Hour)
		require.Equal(t, before, c.given.Load())
		idle(t, w)
	})
}

// letters posts n tasks that log a letter to each of some workers.
func letters(t *testing.T, n int, log *string, workers ...*scheduler.ExecutorWorker) {
	t.Helper()
	for range n {
		for i, w := range workers {
			require.NoError(t, w.Post(func() { *log += string(rune('a' + i)) }))
		}
	}
}

// TestWorkersTakeTurnsBatchByBatch, the goroutine offered back after each.
func TestWorkersTakeTurnsBatchByBatch(t *testing.T) {
	for name, test := range map[string]struct {
		batch int
		want  string
	}{
		"1":  {1, "ababababab"},
		"2":  {2, "aabbaabbab"},
		"3":  {3, "aaabbbaabb"},
		"64": {64, "aaaaabbbbb"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var log string
				m := &manual{}
				s := scheduler.New(m, scheduler.Batch(test.batch))
				a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
				letters(t, 5, &log, a, b)
				m.run()
				require.Equal(t, test.want, log)
				idle(t, a)
				idle(t, b)
			})
		})
	}
}

// TestAFullPoolIsSharedRoundRobin although it takes nothing back.
func TestAFullPoolIsSharedRoundRobin(t *testing.T) {
	for _, name := range []string{"one slot", "one slot, blocking", "never by try", "errgroup", "manual"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var log string
				s := scheduler.New(pools[name](t), scheduler.Batch(2))
				a, b, c := s.NewWorker(t.Context()), s.NewWorker(t.Context()), s.NewWorker(t.Context())
				release := blocked(t, c) // of batch 1 of c, of which one is left
				letters(t, 4, &log, a, b, c)
				synctest.Wait()
				release()
				idle(t, a)
				idle(t, b)
				idle(t, c)
				require.Equal(t, "c"+"aabb"+"cc"+"aabb"+"c", log)
			})
		})
	}
}

// TestAWorkerThatNeverEndsStarvesNobody on a pool of one goroutine.
func TestAWorkerThatNeverEndsStarvesNobody(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		s := scheduler.New(pool)
		a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		ended := make(chan struct{})
		go func() {
			var again func()
			again = func() { _ = a.Post(again) }
			_ = a.Post(func() {
				_ = a.Post(again)
				_ = b.Post(func() { _ = a.Close(); close(ended) })
			})
		}()
		<-ended
		idle(t, a)
		idle(t, b)
	})
}

// TestSliceEndsABatchEarly.
func TestSliceEndsABatchEarly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log string
		m := &manual{}
		s := scheduler.New(m, scheduler.Slice(3*time.Second))
		a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		for range 5 {
			require.NoError(t, a.Post(func() { log += "a"; time.Sleep(2 * time.Second) }))
			require.NoError(t, b.Post(func() { log += "b" }))
		}
		m.run()
		require.Equal(t, "aabbbbbaaa", log)
		idle(t, a)
		idle(t, b)
	})
}

// TestASliceOfNothing still runs a task each time.
func TestASliceOfNothing(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines(), scheduler.Slice(1)).NewWorker(t.Context())
	for range 100 {
		require.NoError(t, w.Post(func() {}))
	}
	require.NoError(t, w.Drain(t.Context()))
	require.EqualValues(t, 100, w.Stats().Done)
	require.LessOrEqual(t, w.Stats().Activations, uint64(100))
}

// TestExecuteIsCalledWithNoLockHeld: it uses the scheduler and its workers.
func TestExecuteIsCalledWithNoLockHeld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var s *scheduler.Scheduler
		var w *scheduler.ExecutorWorker
		left := 10
		use := func() {
			if left--; left < 0 {
				return
			}
			task, _ := w.Schedule(nothing)
			_ = w.Post(func() {})
			_, _ = w.ScheduleAfter(time.Hour, nothing)
			task.Cancel()
			_ = w.Len()
			_ = w.Stats()
			_ = s.Stats()
			_ = s.NewWorker(t.Context()).Post(func() {})
			if left == 5 {
				w.CancelPending()
			}
		}
		for _, pool := range []scheduler.Executor{
			scheduler.ExecutorFunc(func(task func()) error { use(); go task(); return nil }),
			scheduler.ExecutorFunc(func(func()) error { use(); return errPool }),
			trying{func(task func()) error { use(); go task(); return nil }, func(task func()) bool {
				use()
				if left%2 == 0 {
					return false
				}
				go task()
				return true
			}},
		} {
			left = 10
			s = scheduler.New(pool)
			w = s.NewWorker(t.Context())
			require.NoError(t, w.Post(func() {}))
			require.NoError(t, s.Drain(t.Context()))
			require.False(t, left > 9)
		}
	})
}

// TestSchedulingDoesNotBlockOnABlockedPool, and its one place is given out first
// come first served.
func TestSchedulingDoesNotBlockOnABlockedPool(t *testing.T) {
	sem := semaphore.NewWeighted(1)
	for name, pool := range map[string]scheduler.Executor{
		"with a try": scheduler.Limited(sem),
		"without":    scheduler.ExecutorFunc(scheduler.Limited(sem).Execute),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				require.NoError(t, sem.Acquire(t.Context(), 1))
				start := time.Now()
				s := scheduler.New(pool)
				var got []int
				var workers []*scheduler.ExecutorWorker
				for i := range 20 {
					w := s.NewWorker(t.Context())
					workers = append(workers, w)
					_, err := w.Schedule(func(context.Context) { got = append(got, i) })
					require.NoError(t, err)
				}
				require.Zero(t, time.Since(start))
				require.Equal(t, 20, s.Stats().Ready)
				sem.Release(1)
				for _, w := range workers {
					idle(t, w)
				}
				require.Equal(t, upTo(20), slices.Clone(got))
			})
		})
	}
}
