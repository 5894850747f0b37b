package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/sourcegraph/conc/iter"
	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

const manyItems = 10_000

// items returns B5, B5b and B6.
func items() []contest {
	cores := runtime.GOMAXPROCS(0)
	tiny := make([]int, manyItems)
	empty := func(int) error { return nil }
	micro := func(int) error { return busy(context.Background()) }
	all := []contest{{
		id: "B5", what: "ForkJoin of 10,000, Limit(GOMAXPROCS)", allocs: -1, tasks: manyItems,
		ours: always(func(n int) {
			for range n {
				got, err := async.ForkJoin(context.Background(), tiny, func(_ context.Context, i int) (int, error) { return i + 1, nil },
					async.Limit(cores)).Await(context.Background(), 0)
				mustBe(len(got) == manyItems && err == nil)
			}
		}),
		peers: []rival{
			{"conc iter.MapErr", 1.4, concMap(tiny, cores)},
			{"the same, results of 32 B", 1.4, concMapLarge(tiny, cores)},
			{"errgroup.SetLimit", 0.1, limitedGroup(cores, empty)},
		},
	}}
	for _, body := range []struct {
		name string
		f    func(int) error
	}{{"empty", empty}, {"1 µs", micro}} {
		for _, limit := range []int{2, 8, 64} {
			budget := 1.3
			if limit == 2 {
				budget = 0.9
			}
			peers := append([]rival{{"errgroup.SetLimit", budget, limitedGroup(limit, body.f)}}, itemPools(limit, body.f)...)
			what := fmt.Sprintf(" of 10,000, %s, Limit(%d)", body.name, limit)
			all = append(all,
				contest{id: "B5b", what: "ForEach" + what, ours: always(forEach(tiny, limit, body.f)), peers: peers, tasks: manyItems},
				contest{id: "B5b", what: "Map" + what, ours: always(mapped(tiny, limit, body.f)), peers: peers, tasks: manyItems})
		}
	}
	return append(all, contest{
		id: "B6", what: "Scope, Race of 3, Await(1m)", ours: always(race), allocs: 22,
		peers: []rival{{"by hand, a context each", 1.5, raceByHand}},
	})
}

func forEach(items []int, limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			must(async.ForEach(context.Background(), slices.Values(items), func(_ context.Context, i int) error { return f(i) }, async.Limit(limit)))
		}
	}
}

func mapped(items []int, limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			seen := 0
			for _, err := range async.Map(context.Background(), slices.Values(items), func(_ context.Context, i int) (int, error) { return i, f(i) }, async.Limit(limit)) {
				must(err)
				seen++
			}
			mustBe(seen == len(items))
		}
	}
}

func concMap(items []int, limit int) work {
	m := iter.Mapper[int, int]{MaxGoroutines: limit}
	return func(n int) {
		for range n {
			got, err := m.MapErr(items, func(i *int) (int, error) { return *i + 1, nil })
			mustBe(len(got) == len(items) && err == nil)
		}
	}
}

// A largeResult is as large as one of ours.
type largeResult struct {
	index, value int
	err          error
}

// concMapLarge is concMap with results as large as ours: most of what B5 takes is writing them.
func concMapLarge(items []int, limit int) work {
	m := iter.Mapper[int, largeResult]{MaxGoroutines: limit}
	return func(n int) {
		for range n {
			got, err := m.MapErr(items, func(i *int) (largeResult, error) { return largeResult{*i, *i + 1, nil}, nil })
			mustBe(len(got) == len(items) && err == nil)
		}
	}
}

func limitedGroup(limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			var g errgroup.Group
			g.SetLimit(limit)
			for i := range manyItems {
				g.Go(func() error { return f(i) })
			}
			must(g.Wait())
		}
	}
}

func loser(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }

var contenders = []func(context.Context) (int, error){loser, answer, loser}

func race(n int) {
	for range n {
		must(async.Scope(context.Background(), func(ctx context.Context) error {
			v, err := async.Race(ctx, contenders...).Await(ctx, time.Minute)
			mustBe(v == 42)
			return err
		}))
	}
}

// raceByHand gives each contender a context, cancels the losers and joins them,
// as a careful program does.
func raceByHand(n int) {
	for range n {
		v, err := func() (int, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			c := make(chan outcome, len(contenders))
			for _, f := range contenders {
				ctx, cancel := context.WithCancel(ctx)
				go func() {
					defer cancel()
					v, err := f(ctx)
					c <- outcome{v, err}
				}()
			}
			var won outcome
			select {
			case won = <-c:
			case <-ctx.Done():
				won.err = ctx.Err()
			}
			cancel()
			for range len(contenders) - 1 {
				<-c
			}
			return won.v, won.err
		}()
		mustBe(v == 42 && err == nil)
	}
}
