package async_test

import (
	"context"
	"sync"
	"testing"

	"github.com/ambit-go/ambit/async"
)

// What a Group costs beside the WaitGroup that it takes the place of.
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

// TestAGoTaskTakesTwoAllocations: itself, and the start of its goroutine.
func TestAGoTaskTakesTwoAllocations(t *testing.T) {
	ctx := context.Background()
	const n = 1000
	for name, many := range map[string]func(){
		"scope": func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				for range n {
					async.Go(ctx, nothing)
				}
				return nil
			})
		},
		"group": func() {
			g := async.NewGroup(ctx)
			for range n {
				_ = g.Go(nothing)
			}
			_ = g.Wait(ctx)
		},
	} {
		if a := testing.AllocsPerRun(20, many) / n; a > 2.5 {
			t.Errorf("%s: %v allocations a task", name, a)
		}
	}
}
