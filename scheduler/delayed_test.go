package scheduler_test

import (
	"cmp"
	"context"
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
		slices.SortStableFunc(want, func(a, b call) int { return cmp.Compare(a.at, b.at) })
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
	for i := range 2000 / scheduler.RaceFactor {
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

// TestAMillionTimers, half of which are cancelled.
func TestAMillionTimers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		n := 1_000_000 / scheduler.RaceFactor
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

func TestWhatIsPostedAfterADeadlineRunsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 200 {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
			var got []string
			_, _ = w.ScheduleAfter(time.Second, func(context.Context) { got = append(got, "due") })
			time.Sleep(time.Second)
			_ = w.Post(func() { got = append(got, "post") })
			synctest.Wait()
			if got[0] != "due" {
				t.Fatal(i, got)
			}
		}
	})
}
