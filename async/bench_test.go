package async_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

// The benchmarks stand beside what is written by hand today. To compare, run
// them alternating, as `make bench` does, and look at ratios only.

func answer(context.Context) (int, error) { return 42, nil }

func nothing(context.Context) error { return nil }

// busy burns about a microsecond.
func busy(context.Context) error {
	for i := range 1000 {
		sink += i
	}
	return nil
}

var sink int

type outcome struct {
	v   int
	err error
}

// byHand is how a call with a time limit is written without a library.
func byHand(ctx context.Context, timeout time.Duration, f func(context.Context) (int, error)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := make(chan outcome, 1)
	go func() {
		v, err := f(ctx)
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
func goAndChannel(ctx context.Context, f func(context.Context) (int, error)) (int, error) {
	c := make(chan outcome, 1)
	go func() {
		v, err := f(ctx)
		c <- outcome{v, err}
	}()
	o := <-c
	return o.v, o.err
}

func inScope(b *testing.B, f func(ctx context.Context) (int, error)) {
	b.ReportAllocs()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for b.Loop() {
			if v, err := f(ctx); v != 42 || err != nil {
				return errors.New("wrong answer")
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func rooted(b *testing.B, f func(ctx context.Context) (int, error)) {
	b.ReportAllocs()
	ctx := context.Background()
	for b.Loop() {
		if v, err := f(ctx); v != 42 || err != nil {
			b.Fatal("wrong answer")
		}
	}
}

// BenchmarkB1 is Execute and Await with a timeout.
func BenchmarkB1(b *testing.B) {
	ours := func(ctx context.Context) (int, error) { return async.Execute(ctx, answer).Await(ctx, time.Minute) }
	hand := func(ctx context.Context) (int, error) { return byHand(ctx, time.Minute, answer) }
	b.Run("hand", func(b *testing.B) { rooted(b, hand) })
	b.Run("scope", func(b *testing.B) { inScope(b, ours) })
	b.Run("rooted", func(b *testing.B) { rooted(b, ours) })
}

// BenchmarkB2 is Execute and Await without one.
func BenchmarkB2(b *testing.B) {
	ours := func(ctx context.Context) (int, error) { return async.Execute(ctx, answer).Await(ctx, 0) }
	hand := func(ctx context.Context) (int, error) { return goAndChannel(ctx, answer) }
	b.Run("hand", func(b *testing.B) { rooted(b, hand) })
	b.Run("scope", func(b *testing.B) { inScope(b, ours) })
	b.Run("rooted", func(b *testing.B) { rooted(b, ours) })
}

// BenchmarkB3 is a scope with 1,000 tasks.
func BenchmarkB3(b *testing.B) {
	for _, body := range []struct {
		name string
		f    func(context.Context) error
	}{{"empty", nothing}, {"1us", busy}} {
		b.Run(body.name+"/errgroup", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g, ctx := errgroup.WithContext(context.Background())
				for range 1000 {
					g.Go(func() error { return body.f(ctx) })
				}
				if err := g.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(body.name+"/scope", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				err := async.Scope(context.Background(), func(ctx context.Context) error {
					for range 1000 {
						async.Go(ctx, body.f)
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of a Group beside the WaitGroup that it takes the place of.
func BenchmarkGroup(b *testing.B) {
	ctx := context.Background()
	b.Run("Go", func(b *testing.B) {
		b.ReportAllocs()
		g := async.NewGroup(ctx)
		for range b.N {
			_ = g.Go(nothing)
		}
		_ = g.Wait(ctx)
	})
	b.Run("WaitGroup.Go", func(b *testing.B) {
		b.ReportAllocs()
		var g sync.WaitGroup
		for range b.N {
			g.Go(func() { _ = nothing(ctx) })
		}
		g.Wait()
	})
	b.Run("1000 Go and Wait", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			g := async.NewGroup(ctx)
			for range 1000 {
				_ = g.Go(nothing)
			}
			_ = g.Wait(ctx)
		}
	})
	b.Run("1000 WaitGroup.Go and Wait", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var g sync.WaitGroup
			for range 1000 {
				g.Go(func() { _ = nothing(ctx) })
			}
			g.Wait()
		}
	})
	b.Run("Open and Stop", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_ = async.NewGroup(ctx).Stop(ctx, nil)
		}
	})
	b.Run("Open, Go and Stop", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			g := async.NewGroup(ctx)
			_ = g.Go(nothing)
			_ = g.Stop(ctx, nil)
		}
	})
}
