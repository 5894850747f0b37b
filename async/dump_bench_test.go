package async_test

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
)

// BenchmarkSnapshot is a look at many tasks, each of which waits in an Await, and the processor time of the whole process
// meanwhile, the collector's included; B12 is what it costs to
// have that, which is nothing while nobody looks.
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
				used, looks := cpu(), 0
				for b.Loop() {
					async.Snapshot(async.Of(ctx))
					looks++
				}
				b.ReportMetric(float64((cpu()-used).Microseconds())/1000/float64(looks), "cpu-ms/op")
				close(end)
				return nil
			})
		})
	}
}

// cpu returns how much processor time the process has used, as package runtime estimates it. A collection brings that up
// to date.
func cpu() time.Duration {
	runtime.GC()
	used := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(used)
	return time.Duration((used[0].Value.Float64() + used[1].Value.Float64()) * 1e9)
}
