package scheduler_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// TestTasksStartInTheOrderOfTheCallsAndSeeEachOther has no lock around what the
// tasks write: the race detector looks on.
func TestTasksStartInTheOrderOfTheCallsAndSeeEachOther(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		var got []int
		for i := range 300 {
			if i%2 == 0 {
				require.NoError(t, w.Post(func() { got = append(got, i) }))
			} else {
				_, err := w.Schedule(func(context.Context) { got = append(got, i) })
				require.NoError(t, err)
			}
		}
		idle(t, w)
		require.Equal(t, upTo(300), got)
	})
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestCallsThatRaceAreOrderedOneWay: each goroutine finds its own calls in order,
// and nothing is lost.
func TestCallsThatRaceAreOrderedOneWay(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		const producers, each = 8, 200
		last := make([]int, producers) // no lock
		sum := 0
		var wg sync.WaitGroup
		for p := range producers {
			wg.Go(func() {
				for i := range each {
					err := w.Post(func() {
						if last[p] != i {
							t.Errorf("%d of producer %d ran after %d", i, p, last[p])
						}
						last[p]++
						sum++
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		idle(t, w)
		require.Equal(t, producers*each, sum)
	})
}

func TestAtMostOneTaskOfAWorkerRuns(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		s := scheduler.New(pool, scheduler.Batch(3))
		for range 3 {
			w := s.NewWorker(t.Context())
			var running atomic.Int32
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 50 {
						_ = w.Post(func() {
							if running.Add(1) > 1 {
								t.Error("two at once")
							}
							runtime.Gosched()
							running.Add(-1)
						})
					}
				})
			}
			wg.Wait()
			defer idle(t, w)
		}
	})
}

// TestTwoWorkersOfAPoolRunInParallel: each waits for the other.
func TestTwoWorkersOfAPoolRunInParallel(t *testing.T) {
	for _, name := range []string{"goroutines", "recovering", "counting", "chaotic", "limited"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := scheduler.New(pools[name](t))
				a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
				meet := make(chan struct{})
				require.NoError(t, a.Post(func() { meet <- struct{}{} }))
				require.NoError(t, b.Post(func() { <-meet }))
				idle(t, a)
				idle(t, b)
			})
		})
	}
}

// TestATaskScheduledInATaskIsQueued and never run inline, for another worker of
// the scheduler either.
func TestATaskScheduledInATaskIsQueued(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		var log []string
		ended := make(chan struct{})
		var nest func(i int)
		nest = func(i int) {
			log = append(log, strings.Repeat("b", i))
			if i > 1 {
				require.NoError(t, w.Post(func() { nest(i - 1) }))
			} else {
				close(ended)
			}
			log = append(log, strings.Repeat("e", i))
		}
		require.NoError(t, w.Post(func() { nest(3) }))
		<-ended
		idle(t, w)
		require.Equal(t, []string{"bbb", "eee", "bb", "ee", "b", "e"}, log)
	})
	log := "" // one goroutine does it all
	s := scheduler.New(scheduler.Inline())
	a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
	require.NoError(t, a.Post(func() {
		log += "a"
		_ = b.Post(func() { log += "b" })
		log += "A"
	}))
	require.Equal(t, "aAb", log)
	idle(t, a)
	idle(t, b)
}

// TestAMillionSelfReschedulesKeepStackAndHeapFlat on every pool, with fewer on
// the slow ones.
func TestAMillionSelfReschedulesKeepStackAndHeapFlat(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		n := 20_000
		if name == "goroutines" || strings.HasPrefix(name, "inline") {
			n = 1_000_000
		}
		n /= scheduler.RaceFactor
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := scheduler.New(pools[name](t)).NewWorker(t.Context())
				depth := func() int { return runtime.Callers(0, make([]uintptr, 500)) }
				var first, deepest, count int
				var before, after runtime.MemStats
				ended := make(chan struct{})
				var again func()
				again = func() {
					if count++; count == 10 {
						runtime.GC()
						runtime.ReadMemStats(&before)
						first = depth()
					}
					if count%1000 == 0 {
						deepest = max(deepest, depth())
					}
					if count == n {
						close(ended)
						return
					}
					_ = w.Post(again)
				}
				require.NoError(t, w.Post(again))
				<-ended
				idle(t, w)
				runtime.GC()
				runtime.ReadMemStats(&after)
				require.LessOrEqual(t, deepest, first+20)
				require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20))
			})
		})
	}
}

// TestPostAllIsOnePieceOfTheQueue although others post meanwhile.
func TestPostAllIsOnePieceOfTheQueue(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		var got []int
		var wg sync.WaitGroup
		for p := range 5 {
			wg.Go(func() {
				for range 5 {
					n, err := w.PostAll(func(yield func(func()) bool) {
						for range 100 {
							yield(func() { got = append(got, p) })
						}
					})
					if err != nil || n != 100 {
						t.Error(n, err)
					}
				}
			})
		}
		wg.Wait()
		idle(t, w)
		require.Len(t, got, 2500)
		for piece := range slices.Chunk(got, 100) {
			require.Len(t, slices.Compact(piece), 1)
		}
	})
}

// TestAWorkerFedFromTwoPools is serial all the same: one schedules on the other.
func TestAWorkerFedFromTwoPools(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		w := scheduler.New(pool).NewWorker(t.Context())
		other := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		x := 0
		for range 200 {
			require.NoError(t, w.Post(func() { x++ }))
			require.NoError(t, other.Post(func() { _ = w.Post(func() { x++ }) }))
		}
		idle(t, other)
		idle(t, w)
		require.Equal(t, 400, x)
	})
}

func TestTasksRunInOrder(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	x := 0 // no lock
	for i := range 1000 {
		require.NoError(t, w.Post(func() {
			if x != i {
				t.Errorf("%d ran after %d others", i, x)
			}
			x++
		}))
	}
	v, err := scheduler.Call(t.Context(), w, func(context.Context) (int, error) { return x, nil })
	require.NoError(t, err)
	require.Equal(t, 1000, v)
	require.NoError(t, w.Drain(t.Context()))
}
