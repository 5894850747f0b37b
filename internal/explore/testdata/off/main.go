// Off uses what is hot in packages async and scheduler, so that it is compiled.
package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

func main() {
	one := func(context.Context) (int, error) { return 1, nil }
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return nil })
		_, err := async.Execute(ctx, one).Await(ctx, time.Minute)
		async.AwaitAll(ctx, 0, async.Race(ctx, one, one), async.Any(ctx, one, one))
		async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return one(ctx) })
		_ = async.ForEach(ctx, slices.Values([]int{1}), func(context.Context, int) error { return nil })
		async.Repeat(ctx, async.Every(time.Second), func(context.Context) error { return nil }, async.Attempts(1))
		f, p := async.NewPromise[int](ctx)
		p.Resolve(1)
		f.Cancel(nil)
		w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
		_ = w.Post(func() {})
		_, _ = scheduler.Submit(w, one).Join(ctx)
		return err
	}, async.Limit(2))
	if err != nil {
		os.Exit(1)
	}
}
