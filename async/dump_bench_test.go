package async_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/ambit-go/ambit/async"
)

// BenchmarkSnapshot is a look at many tasks, each of which waits in an Await; B12 is what it costs to
// have that, which is nothing while nobody looks. No collection of garbage goes on meanwhile: it has the
// stacks of all tasks to look through, which takes several times as long as the look.
func BenchmarkSnapshot(b *testing.B) {
	for name, n := range map[string]int{"1000 tasks": 1000, "100000 tasks": 100_000} {
		b.Run(name, func(b *testing.B) {
			_ = async.Scope(context.Background(), func(ctx context.Context) error {
				end := make(chan struct{})
				target := async.Start(ctx, func(context.Context) error { <-end; return nil })
				for range n {
					async.Go(ctx, func(ctx context.Context) error { _, err := target.Wait(ctx); return err })
				}
				for async.Snapshot(async.Of(ctx), async.AtMost(1)).Live < n+2 {
				}
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					runtime.GC()
					b.StartTimer()
					async.Snapshot(async.Of(ctx))
				}
				close(end)
				return nil
			})
		})
	}
}
