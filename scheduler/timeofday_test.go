package scheduler_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

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

// TestTimesOfDayRunInTheirOrder on the real clock, equal ones in the order of the
// calls.
func TestTimesOfDayRunInTheirOrder(t *testing.T) {
	for name, step := range map[string]time.Duration{"equal": 0, "apart by nanoseconds": 10} {
		t.Run(name, func(t *testing.T) {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
			at := time.Now().Add(200 * time.Millisecond)
			var got []int
			var all sync.WaitGroup
			for i := range 200 {
				all.Add(1)
				_, err := w.ScheduleAt(at.Add(time.Duration(i/2)*step), func(context.Context) { got = append(got, i); all.Done() })
				require.NoError(t, err)
			}
			all.Wait()
			require.True(t, slices.IsSorted(got), "%v", got)
			idle(t, w)
		})
	}
}
