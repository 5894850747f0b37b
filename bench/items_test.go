package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	conc "github.com/sourcegraph/conc/iter"
	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

// The budgets B5, B5b and B6 of the design as ratios: what is compared runs in
// turn in one process, and the median of the ratios is what counts.

// beside reports how long ours takes as a multiple of what peer takes, over
// at least ten rounds.
func beside(b *testing.B, ours, peer func()) {
	ours()
	peer()
	var ratios []float64
	var spent [2]time.Duration
	for b.Loop() {
		for range 10 {
			start := time.Now()
			peer()
			middle := time.Now()
			ours()
			theirs, mine := middle.Sub(start), time.Since(middle)
			spent[0], spent[1] = spent[0]+theirs, spent[1]+mine
			ratios = append(ratios, float64(mine)/float64(theirs))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(len(ratios)), "peer-ns")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(len(ratios)), "ours-ns")
	b.ReportMetric(0, "ns/op")
}

// allocations reports what one call of f allocates, divided by n.
func allocations(b *testing.B, n int, f func()) {
	b.ReportMetric(testing.AllocsPerRun(3, f)/float64(n), "allocs")
}

const some = 10_000

var items = make([]int, some)

// spin takes about d.
//
//go:noinline
func spin(d time.Duration) {
	x := int64(0)
	for i := range int64(d/time.Microsecond) * 1600 {
		x += i
	}
	spun.Store(x)
}

var spun atomic.Int64 // so that nothing is left out

func BenchmarkForkJoin(b *testing.B) {
	limit := runtime.GOMAXPROCS(0)
	ctx := context.Background()
	ours := func() {
		got, err := async.ForkJoin(ctx, items, func(_ context.Context, i int) (int, error) { return i + 1, nil }, async.Limit(limit)).Await(ctx, 0)
		check(b, len(got) == some, err)
	}
	b.Run("conc", func(b *testing.B) {
		m := conc.Mapper[int, int]{MaxGoroutines: limit}
		beside(b, ours, func() {
			got, err := m.MapErr(items, func(i *int) (int, error) { return *i + 1, nil })
			check(b, len(got) == some, err)
		})
	})
	b.Run("errgroup", func(b *testing.B) { beside(b, ours, func() { grouped(b, limit, 0) }) })
}

// grouped does all items with an errgroup.
func grouped(b *testing.B, limit int, work time.Duration) {
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(limit)
	for range items {
		g.Go(func() error { spin(work); return ctx.Err() })
	}
	check(b, true, g.Wait())
}

func BenchmarkSequences(b *testing.B) {
	ctx := context.Background()
	for _, work := range []time.Duration{0, time.Microsecond, 10 * time.Microsecond} {
		for _, limit := range []int{2, 8, 64} {
			peer := func() { grouped(b, limit, work) }
			forEach := func() {
				check(b, true, async.ForEach(ctx, slices.Values(items), func(ctx context.Context, _ int) error { spin(work); return ctx.Err() }, async.Limit(limit)))
			}
			mapped := func() {
				n := 0
				for _, err := range async.Map(ctx, slices.Values(items), func(ctx context.Context, i int) (int, error) { spin(work); return i, ctx.Err() }, async.Limit(limit)) {
					check(b, true, err)
					n++
				}
				check(b, n == some, nil)
			}
			completed := func() {
				var tasks iter.Seq[func(context.Context) (int, error)] = func(yield func(func(context.Context) (int, error)) bool) {
					for range items {
						if !yield(func(ctx context.Context) (int, error) { spin(work); return 1, ctx.Err() }) {
							return
						}
					}
				}
				for _, r := range async.AsCompleted(ctx, tasks, async.Limit(limit)) {
					check(b, true, r.Err)
				}
			}
			for _, f := range []struct {
				name string
				do   func()
			}{{"ForEach", forEach}, {"Map", mapped}, {"AsCompleted", completed}} {
				b.Run(fmt.Sprintf("%s/%v/%d", f.name, work, limit), func(b *testing.B) {
					beside(b, f.do, peer)
					allocations(b, some, f.do)
				})
			}
		}
	}
}

// apart gives each contender a context of its own, as [async.Race] does.
func apart(tasks []func(context.Context) (int, error)) []func(context.Context) (int, error) {
	own := make([]func(context.Context) (int, error), len(tasks))
	for i, task := range tasks {
		own[i] = func(ctx context.Context) (int, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return task(ctx)
		}
	}
	return own
}

func BenchmarkRace(b *testing.B) {
	lose := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	tasks := []func(context.Context) (int, error){lose, answer, lose}
	rounds := func(f func()) func() {
		return func() {
			for range 200 {
				f()
			}
		}
	}
	ours := func() {
		err := async.Scope(context.Background(), func(ctx context.Context) error {
			v, err := async.Race(ctx, tasks...).Await(ctx, time.Minute)
			if v != 42 {
				return errors.New("wrong answer")
			}
			return err
		})
		check(b, true, err)
	}
	b.Run("apart", func(b *testing.B) {
		tasks := apart(tasks)
		beside(b, rounds(ours), rounds(func() {
			v, err := raceByHand(context.Background(), time.Minute, tasks...)
			check(b, v == 42, err)
		}))
		allocations(b, 1, ours)
	})
	b.Run("together", func(b *testing.B) {
		beside(b, rounds(ours), rounds(func() {
			v, err := raceByHand(context.Background(), time.Minute, tasks...)
			check(b, v == 42, err)
		}))
	})
}
