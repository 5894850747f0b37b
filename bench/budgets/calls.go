package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

func answer(context.Context) (int, error) { return 42, nil }

func nothing(context.Context) error { return nil }

var sink atomic.Int64

// busy burns about a microsecond.
func busy(context.Context) error {
	s := 0
	for i := range 1000 {
		s += i
	}
	sink.Store(int64(s))
	return nil
}

type outcome struct {
	v   int
	err error
}

// byHand is how a call with a time limit is written without a library.
func byHand(ctx context.Context, timeout time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := make(chan outcome, 1)
	go func() {
		v, err := answer(ctx)
		c <- outcome{v, err}
	}()
	select {
	case o := <-c:
		return o.v, o.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// goAndChannel is the same without a limit.
func goAndChannel(ctx context.Context) (int, error) {
	c := make(chan outcome, 1)
	go func() {
		v, err := answer(ctx)
		c <- outcome{v, err}
	}()
	o := <-c
	return o.v, o.err
}

// repeat is work that calls f with ctx.
func repeat(ctx context.Context, f func(ctx context.Context) (int, error)) work {
	return func(n int) {
		for range n {
			v, err := f(ctx)
			mustBe(v == 42 && err == nil)
		}
	}
}

// inScope is work that calls f in one scope.
func inScope(f func(ctx context.Context) (int, error)) work {
	return func(n int) {
		must(async.Scope(context.Background(), func(ctx context.Context) error {
			repeat(ctx, f)(n)
			return nil
		}))
	}
}

// calls returns B1 to B4.
func calls() []contest {
	limited := func(ctx context.Context) (int, error) { return async.Execute(ctx, answer).Await(ctx, time.Minute) }
	unlimited := func(ctx context.Context) (int, error) { return async.Execute(ctx, answer).Await(ctx, 0) }
	background := context.Background()
	hand := repeat(background, func(ctx context.Context) (int, error) { return byHand(ctx, time.Minute) })
	plain := repeat(background, goAndChannel)
	all := []contest{
		{id: "B1", what: "Execute, Await(1m) in a scope", ours: always(inScope(limited)), peers: []rival{{"WithTimeout, go, select", 0.6, hand}}, allocs: 3},
		{id: "B1", what: "Execute, Await(1m) rooted", ours: always(repeat(background, limited)), peers: []rival{{"WithTimeout, go, select", 0.85, hand}}, allocs: 6},
		{id: "B2", what: "Execute, Await(0) in a scope", ours: always(inScope(unlimited)), peers: []rival{{"go, channel", 1.3, plain}}, allocs: 3},
		{id: "B2", what: "Execute, Await(0) rooted", ours: always(repeat(background, unlimited)), peers: []rival{{"go, channel", 1.5, plain}}, allocs: 4},
		{id: "B3", what: "Scope, 1,000 Go, empty", ours: always(scopeOfTasks(nothing)), peers: []rival{{"errgroup", 1.25, groupOfTasks(nothing)}, {"conc", 0, concOfTasks(nothing)}, {"taskgroup", 0, taskgroupOfTasks(nothing)}}, allocs: 2, tasks: 1000},
		{id: "B3", what: "Scope, 1,000 Go, 1 µs", ours: always(scopeOfTasks(busy)), peers: []rival{{"errgroup", 1.1, groupOfTasks(busy)}, {"conc", 0, concOfTasks(busy)}, {"taskgroup", 0, taskgroupOfTasks(busy)}}, allocs: 2, tasks: 1000},
		{id: "B4", what: "1,000 Execute, AwaitAll", ours: always(awaitAll), peers: []rival{{"conc", 0.8, concPool}, {"errgroup, slice", 1.3, groupAndSlice}}, allocs: 3, tasks: 1000},
	}
	return all
}

func scopeOfTasks(f func(context.Context) error) work {
	return func(n int) {
		for range n {
			must(async.Scope(context.Background(), func(ctx context.Context) error {
				for range 1000 {
					async.Go(ctx, f)
				}
				return nil
			}))
		}
	}
}

func groupOfTasks(f func(context.Context) error) work {
	return func(n int) {
		for range n {
			g, ctx := errgroup.WithContext(context.Background())
			for range 1000 {
				g.Go(func() error { return f(ctx) })
			}
			must(g.Wait())
		}
	}
}

func awaitAll(n int) {
	for range n {
		must(async.Scope(context.Background(), func(ctx context.Context) error {
			futures := make([]*async.Future[int], 1000)
			for i := range futures {
				futures[i] = async.Execute(ctx, answer)
			}
			for _, r := range async.AwaitAll(ctx, 0, futures...) {
				mustBe(r.Err == nil && r.Value == 42)
			}
			return nil
		}))
	}
}

func concPool(n int) {
	for range n {
		p := pool.NewWithResults[int]().WithContext(context.Background())
		for range 1000 {
			p.Go(answer)
		}
		got, err := p.Wait()
		mustBe(len(got) == 1000 && err == nil)
	}
}

func groupAndSlice(n int) {
	for range n {
		g, ctx := errgroup.WithContext(context.Background())
		got := make([]int, 1000)
		for i := range got {
			g.Go(func() (err error) { got[i], err = answer(ctx); return err })
		}
		must(g.Wait())
		mustBe(got[0] == 42)
	}
}
