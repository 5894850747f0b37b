package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

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
