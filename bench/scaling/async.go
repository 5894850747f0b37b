package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

func asyncCurves() []curve {
	return []curve{
		{ID: "S1", group: "async", what: "Execute and Await, a scope for each worker", axis: "workers", at: few, with: fixed(awaits)},
		{ID: "S2", group: "async", what: "Execute and Await, a scope for each of as many workers", axis: "processors", at: processors(), with: onProcessors(awaits)},
		{ID: "S3", group: "async", what: "Go by several producers in one scope", axis: "producers", at: few, with: fixed(goInOneScope)},
		{ID: "S4", group: "async", what: "ForEach with Limit, items of 1 µs", axis: "workers", at: few, with: fixed(eachOf(micro))},
		{ID: "S5", group: "async", what: "ForEach with Limit, items that wait for 1 ms", axis: "workers", at: many, waits: true, with: fixed(eachOf(wait))},
	}
}

// awaits has n goroutines, each with a scope, execute tasks and await each.
func awaits(n, units int) {
	share(n, units, func(units int) {
		must(async.Scope(context.Background(), func(ctx context.Context) error {
			for range units {
				if _, err := async.Execute(ctx, answer).Await(ctx, time.Minute); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// goInOneScope has n goroutines start tasks in one scope.
func goInOneScope(n, units int) {
	must(async.Scope(context.Background(), func(ctx context.Context) error {
		share(n, units, func(units int) {
			for range units {
				async.Go(ctx, nothing)
			}
		})
		return nil
	}))
}

// eachOf does items, n at a time.
func eachOf(f func(context.Context) error) func(n, units int) {
	return func(n, units int) {
		items := slices.Values(make([]struct{}, units))
		must(async.ForEach(context.Background(), items, func(ctx context.Context, _ struct{}) error { return f(ctx) }, async.Limit(n)))
	}
}

func answer(context.Context) (int, error) { return 42, nil }

func nothing(context.Context) error { return nil }

func wait(context.Context) error { time.Sleep(time.Millisecond); return nil }

var sink atomic.Int64

// micro burns about a microsecond.
func micro(context.Context) error {
	s := 0
	for i := range 1000 {
		s += i
	}
	sink.Store(int64(s))
	return nil
}
