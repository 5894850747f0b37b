package scheduler_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// TestDelayedTasksRunInTheOrderOfTheirDeadlines, never early, equal ones in the
// order of the calls.
func TestDelayedTasksRunInTheOrderOfTheirDeadlines(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		type call struct {
			at   time.Duration
			call int
		}
		start := time.Now()
		var want, got []call
		for i := range 1000 {
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
			d := time.Duration(rand.N(5)-1) * time.Second
			c := call{time.Since(start) + max(d, 0), i}
			_, err := w.ScheduleAfter(d, func(context.Context) {
				if time.Since(start) < c.at {
					t.Errorf("%v early", c.at-time.Since(start))
				}
				got = append(got, c)
			})
			require.NoError(t, err)
			if d > 0 { // others are in the order of the calls, wherever
				want = append(want, c)
			}
		}
		time.Sleep(10 * time.Second)
		idle(t, w)
		require.Len(t, got, 1000)
		got = slices.DeleteFunc(got, func(c call) bool { return !slices.Contains(want, c) })
		slices.SortStableFunc(want, func(a, b call) int { return int(a.at - b.at) })
		require.Equal(t, want, got)
	})
}

// TestADelayedTaskJoinsTheEndOfTheQueue at its deadline.
func TestADelayedTaskJoinsTheEndOfTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		release := blocked(t, w)
		log := ""
		_, err := w.ScheduleAfter(time.Second, func(context.Context) { log += "2" })
		require.NoError(t, err)
		require.NoError(t, w.Post(func() { log += "1" }))
		time.Sleep(time.Minute)
		require.NoError(t, w.Post(func() { log += "3" }))
		release()
		idle(t, w)
		require.Equal(t, "123", log)
	})
}

// TestDeadlineOrderOnTheRealClock holds although timers are late and calls are
// made after a deadline that the timer has not told of.
func TestDeadlineOrderOnTheRealClock(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	var got []int
	for i := range 2000 / raceFactor {
		first := time.Now().Add(20 * time.Microsecond)
		_, err := w.ScheduleAfter(20*time.Microsecond, func(context.Context) {
			if time.Now().Before(first) {
				t.Error("early")
			}
			got = append(got, 2*i)
		})
		require.NoError(t, err)
		spin(20 * time.Microsecond) // it is due from here on
		_, err = w.ScheduleAfter(1, func(context.Context) { got = append(got, 2*i+1) })
		require.NoError(t, err)
	}
	for w.Len() > 0 {
		time.Sleep(time.Millisecond)
	}
	idle(t, w)
	require.Equal(t, upTo(len(got)), got)
}

// TestATimeOfDay with a monotonic reading and without.
func TestATimeOfDay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		start := time.Now()
		var at []time.Duration
		note := func(context.Context) { at = append(at, time.Since(start)) }
		for _, when := range []time.Time{start.Add(3 * time.Second), start.Add(2 * time.Second).Round(0), start.Add(-time.Hour), {}, start.UTC().Round(0).Add(time.Second)} {
			_, err := w.ScheduleAt(when, note)
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		idle(t, w)
		require.Equal(t, []time.Duration{0, 0, time.Second, 2 * time.Second, 3 * time.Second}, at)
	})
}

// TestDelaysAtTheEnds of what a duration can be.
func TestDelaysAtTheEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		log := ""
		for _, d := range []time.Duration{math.MinInt64, -1, 0} {
			_, err := w.ScheduleAfter(d, func(context.Context) { log += "now " })
			require.NoError(t, err)
		}
		never, err := w.ScheduleAfter(math.MaxInt64, func(context.Context) { log += "never " })
		require.NoError(t, err)
		far, err := w.ScheduleAt(time.Unix(1<<40, 0), func(context.Context) { log += "far " })
		require.NoError(t, err)
		every, err := w.ScheduleEvery(time.Second, math.MaxInt64, func(context.Context) { log += "once " })
		require.NoError(t, err)
		_, err = w.ScheduleEvery(math.MaxInt64, math.MaxInt64, func(context.Context) { log += "never " }, scheduler.Burst())
		require.NoError(t, err)
		time.Sleep(24 * 365 * time.Hour)
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, "now now now once ", log)
		require.Equal(t, 4, w.Len())
		require.True(t, never.Cancel())
		require.True(t, far.Cancel())
		require.True(t, every.Cancel())
		idle(t, w)
	})
}

// runsOf returns when the first n runs of a periodic task begin, each of which
// takes as long as work says.
func runsOf(t *testing.T, n int, first, every time.Duration, work func(i int) time.Duration, opts ...scheduler.EveryOption) (at []int) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		start := time.Now()
		task, err := w.ScheduleEvery(first, every, func(context.Context) {
			at = append(at, int(time.Since(start)/time.Second))
			time.Sleep(work(len(at) - 1))
			if len(at) == n {
				w.CancelPending()
			}
		}, opts...)
		require.NoError(t, err)
		for task.State() != scheduler.Cancelled {
			time.Sleep(time.Second)
		}
		idle(t, w)
	})
	return at
}

func TestWhenPeriodicTasksRun(t *testing.T) {
	const s = time.Second
	takes := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	once := func(d time.Duration) func(int) time.Duration {
		return func(i int) time.Duration {
			if i == 1 {
				return d
			}
			return 0
		}
	}
	for name, test := range map[string]struct {
		first, every time.Duration
		work         func(int) time.Duration
		opts         []scheduler.EveryOption
		want         []int
	}{
		"on the grid":             {3 * s, 10 * s, takes(0), nil, []int{3, 13, 23, 33}},
		"on the grid, with work":  {0, 10 * s, takes(9 * s), nil, []int{0, 10, 20, 30}},
		"work as long as a tick":  {0, 10 * s, takes(10 * s), nil, []int{0, 10, 20, 30}},
		"skip":                    {10 * s, 10 * s, takes(25 * s), nil, []int{10, 40, 70, 100, 130, 160, 190, 220}},
		"burst":                   {10 * s, 10 * s, takes(25 * s), []scheduler.EveryOption{scheduler.Burst()}, []int{10, 35, 60, 85, 110, 135, 160, 185}},
		"delay":                   {10 * s, 10 * s, takes(25 * s), []scheduler.EveryOption{scheduler.FixedDelay()}, []int{10, 45, 80, 115, 150, 185, 220, 255}},
		"one is late, skip":       {0, 10 * s, once(25 * s), nil, []int{0, 10, 40, 50}},
		"one is late, burst":      {0, 10 * s, once(25 * s), []scheduler.EveryOption{scheduler.Burst()}, []int{0, 10, 35, 35, 40, 50}},
		"one is late, delay":      {0, 10 * s, once(25 * s), []scheduler.EveryOption{scheduler.FixedDelay()}, []int{0, 10, 45, 55}},
		"a negative first":        {-s, 10 * s, takes(0), nil, []int{0, 10, 20}},
		"no period":               {s, 0, takes(2 * s), nil, []int{1, 3, 5, 7}},
		"a negative period":       {s, -s, takes(2 * s), []scheduler.EveryOption{scheduler.Burst()}, []int{1, 3, 5, 7}},
		"no period, fixed delay":  {s, 0, takes(2 * s), []scheduler.EveryOption{scheduler.FixedDelay()}, []int{1, 3, 5, 7}},
		"no drift in a long time": {0, 7 * s, takes(6 * s), nil, multiples(7, 200)},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, runsOf(t, len(test.want), test.first, test.every, test.work, test.opts...))
		})
	}
}

func multiples(of, n int) []int {
	s := upTo(n)
	for i := range s {
		s[i] *= of
	}
	return s
}

// TestAPeriodOfZeroLetsOthersIn: it joins the end of the queue each time.
func TestAPeriodOfZeroLetsOthersIn(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		log := ""
		done := make(chan struct{})
		require.NoError(t, w.Post(func() {
			for range 2 {
				_, err := w.ScheduleEvery(0, 0, func(context.Context) {
					if log += "e"; len(log) >= 9 {
						w.CancelPending()
						close(done)
					}
				})
				require.NoError(t, err)
				require.NoError(t, w.Post(func() { log += "p" }))
			}
		}))
		<-done
		idle(t, w)
		require.Equal(t, "epepeeeee", log)
	})
}

// TestCancelOfAPeriodicTask before its first tick, between two, and inside one.
func TestCancelOfAPeriodicTask(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		for _, test := range []struct {
			at   time.Duration
			runs int
			won  bool
		}{{500 * time.Millisecond, 0, true}, {2500 * time.Millisecond, 2, true}, {3200 * time.Millisecond, 3, false}} {
			runs := 0
			var seen context.Context
			task, err := w.ScheduleEvery(time.Second, time.Second, func(ctx context.Context) {
				require.True(t, seen == nil || seen == ctx, "all runs share one")
				seen = ctx
				require.NoError(t, ctx.Err())
				runs++
				time.Sleep(400 * time.Millisecond)
			})
			require.NoError(t, err)
			time.Sleep(test.at)
			require.Equal(t, test.won, task.Cancel())
			require.False(t, task.Cancel())
			time.Sleep(time.Minute)
			require.NoError(t, w.Wait(t.Context()))
			require.Equal(t, test.runs, runs)
			require.Equal(t, scheduler.Cancelled, task.State())
			if seen != nil {
				require.Equal(t, scheduler.ErrCancelled, context.Cause(seen))
			}
			addUp(t, w)
		}
		idle(t, w)
	})
}

// TestAMillionTimers, half of which are cancelled.
func TestAMillionTimers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		const n = 1_000_000 / raceFactor
		ran, last := 0, time.Duration(0)
		start := time.Now()
		tasks := make([]scheduler.Task, n)
		for i := range tasks {
			d := time.Duration(rand.N(3000)) * time.Millisecond
			var err error
			tasks[i], err = w.ScheduleAfter(d, func(context.Context) {
				if d < last || time.Since(start) < d {
					t.Error("early, or out of order")
				}
				last = d
				ran++
			})
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		cancelled := 0
		for i := 0; i < n; i += 2 {
			if tasks[i].Cancel() {
				cancelled++
			}
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, n, ran+cancelled)
		st := addUp(t, w)
		require.Zero(t, st.Delayed)
		idle(t, w)
	})
}

// TestDrainRunsWhatIsDue although no timer has told of it.
func TestDrainRunsWhatIsDue(t *testing.T) {
	for range 200 {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		due, err := w.ScheduleAfter(20*time.Microsecond, nothing)
		require.NoError(t, err)
		late, err := w.ScheduleAfter(time.Hour, nothing)
		require.NoError(t, err)
		spin(20 * time.Microsecond)
		require.NoError(t, w.Drain(t.Context()))
		require.Equal(t, scheduler.Done, due.State())
		require.Equal(t, scheduler.Cancelled, late.State())
	}
}

// spin takes d, with no timer.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) <= d; {
	}
}
