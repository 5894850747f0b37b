package bench

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sourcegraph/conc/iter"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

// Numbers of the budgets in the design: B4 is 1,000 tasks with results, B5 is
// 10,000 tiny items, B6 is a race of three inside a scope. In each the first of
// a group is the peer. Compare ratios of runs that alternate, not times.

func answer(context.Context) (int, error) { return 42, nil }

func check(b *testing.B, ok bool, err error) {
	if !ok || err != nil {
		b.Fatal("wrong answer", err)
	}
}

func BenchmarkB4(b *testing.B) {
	const n = 1000
	b.Run("conc", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p := pool.NewWithResults[int]().WithContext(context.Background())
			for range n {
				p.Go(answer)
			}
			got, err := p.Wait()
			check(b, len(got) == n, err)
		}
	})
	b.Run("errgroup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, ctx := errgroup.WithContext(context.Background())
			got := make([]int, n)
			for i := range n {
				g.Go(func() (err error) { got[i], err = answer(ctx); return err })
			}
			check(b, got[0] >= 0, g.Wait())
		}
	})
	b.Run("ambit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			err := async.Scope(context.Background(), func(ctx context.Context) error {
				futures := make([]*async.Future[int], n)
				for i := range futures {
					futures[i] = async.Execute(ctx, answer)
				}
				for _, r := range async.AwaitAll(ctx, 0, futures...) {
					if r.Err != nil || r.Value != 42 {
						return errors.New("wrong answer")
					}
				}
				return nil
			})
			check(b, true, err)
		}
	})
}

func BenchmarkB5(b *testing.B) {
	items := make([]int, 10_000)
	tiny := func(i int) (int, error) { return i + 1, nil }
	limit := runtime.GOMAXPROCS(0)
	b.Run("conc", func(b *testing.B) {
		b.ReportAllocs()
		m := iter.Mapper[int, int]{MaxGoroutines: limit}
		for b.Loop() {
			got, err := m.MapErr(items, func(i *int) (int, error) { return tiny(*i) })
			check(b, len(got) == len(items), err)
		}
	})
	b.Run("errgroup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var g errgroup.Group
			g.SetLimit(limit)
			got := make([]int, len(items))
			for i, item := range items {
				g.Go(func() (err error) { got[i], err = tiny(item); return err })
			}
			check(b, got[0] >= 0, g.Wait())
		}
	})
	b.Run("ambit", func(b *testing.B) {
		b.ReportAllocs()
		ctx := context.Background()
		for b.Loop() {
			got, err := async.ForkJoin(ctx, items, func(_ context.Context, i int) (int, error) { return tiny(i) }, async.Limit(limit)).Await(ctx, 0)
			check(b, len(got) == len(items), err)
		}
	})
	b.Run("ambit ForEach", func(b *testing.B) {
		b.ReportAllocs()
		ctx := context.Background()
		for b.Loop() {
			err := async.ForEach(ctx, slices.Values(items), func(_ context.Context, i int) error { _, err := tiny(i); return err }, async.Limit(limit))
			check(b, true, err)
		}
	})
}

// raceByHand cancels the losers and joins them, as a careful program does.
func raceByHand(ctx context.Context, timeout time.Duration, tasks ...func(context.Context) (int, error)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type outcome struct {
		v   int
		err error
	}
	c := make(chan outcome, len(tasks))
	for _, task := range tasks {
		go func() {
			v, err := task(ctx)
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
	for range len(tasks) - 1 {
		<-c
	}
	return won.v, won.err
}

func BenchmarkB6(b *testing.B) {
	tasks := []func(context.Context) (int, error){
		func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
		answer,
		func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
	}
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v, err := raceByHand(context.Background(), time.Minute, tasks...)
			check(b, v == 42, err)
		}
	})
	b.Run("ambit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			err := async.Scope(context.Background(), func(ctx context.Context) error {
				v, err := async.Race(ctx, tasks...).Await(ctx, time.Minute)
				if v != 42 {
					return errors.New("wrong answer")
				}
				return err
			})
			check(b, true, err)
		}
	})
}
