package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

// The budget B15 of the design: what a task costs that queues for a Limit.

func nothing(context.Context) error { return nil }

func BenchmarkLimit(b *testing.B) {
	for _, work := range []time.Duration{0, time.Microsecond, 10 * time.Microsecond} {
		task := func(context.Context) error { spin(work); return nil }
		for _, limit := range []int{2, 8, 64} {
			peer := func() {
				var g errgroup.Group
				g.SetLimit(limit)
				for range some {
					g.Go(func() error { return task(context.Background()) })
				}
				check(b, true, g.Wait())
			}
			scope := func(start func(ctx context.Context)) func() {
				return func() {
					check(b, true, async.Scope(context.Background(), func(ctx context.Context) error {
						for range some {
							start(ctx)
						}
						return nil
					}, async.Limit(limit)))
				}
			}
			name := fmt.Sprintf("limit=%d/work=%v/", limit, work)
			b.Run(name+"Go", func(b *testing.B) { beside(b, scope(func(ctx context.Context) { async.Go(ctx, task) }), peer) })
			b.Run(name+"Start", func(b *testing.B) { beside(b, scope(func(ctx context.Context) { async.Start(ctx, task) }), peer) })
		}
	}
}

// BenchmarkQueuedMemory measures what a task takes while it queues.
func BenchmarkQueuedMemory(b *testing.B) {
	for name, start := range map[string]func(ctx context.Context){
		"Go":       func(ctx context.Context) { async.Go(ctx, nothing) },
		"Execute":  func(ctx context.Context) { async.Execute(ctx, answer) },
		"Priority": func(ctx context.Context) { async.Go(ctx, nothing, urgent) },
	} {
		b.Run(name, func(b *testing.B) {
			const tasks = 100_000
			for b.Loop() {
				check(b, true, async.Scope(context.Background(), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					before := heap()
					for range tasks {
						start(ctx)
					}
					b.ReportMetric(float64(heap()-before)/tasks, "B/task")
					close(gate)
					return nil
				}, async.Limit(1)))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

var urgent = async.Priority(1)

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkLimitGrowth is about what may not depend on how much there is of
// something (B14): the time of one step, in the middle of n.
func BenchmarkLimitGrowth(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("queue/%d", n), func(b *testing.B) {
			grows(b, n, func() {
				check(b, true, async.Scope(context.Background(), func(ctx context.Context) error {
					for range n {
						async.Go(ctx, nothing)
					}
					return nil
				}, async.Limit(1)))
			})
		})
		b.Run(fmt.Sprintf("priorities/%d", n), func(b *testing.B) {
			grows(b, n, func() {
				check(b, true, async.Scope(context.Background(), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					for i := range n {
						async.Go(ctx, nothing, async.Priority(i*7919%n))
					}
					close(gate)
					return nil
				}, async.Limit(1)))
			})
		})
		b.Run(fmt.Sprintf("withdrawn/%d", n), func(b *testing.B) {
			grows(b, n, func() {
				_ = async.Scope(context.Background(), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					for range n {
						async.Go(ctx, nothing)
					}
					defer close(gate)
					return context.Canceled
				}, async.Limit(1))
			})
		})
		b.Run(fmt.Sprintf("waits cut short/%d", n), func(b *testing.B) {
			grows(b, n, func() { cutShort(b, n) })
		})
	}
	for _, depth := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("nested/%d", depth), func(b *testing.B) {
			var spent time.Duration
			var step func(ctx context.Context, left int) error
			step = func(ctx context.Context, left int) error {
				if left > 0 {
					return async.Scope(ctx, func(ctx context.Context) error { return step(ctx, left-1) }, async.Limit(2))
				}
				start := time.Now()
				for range 1_000 {
					v, err := async.Execute(ctx, answer).Await(ctx, time.Hour)
					check(b, v == 42, err)
				}
				spent = time.Since(start)
				return nil
			}
			for b.Loop() {
				check(b, true, step(context.Background(), depth))
			}
			b.ReportMetric(float64(spent.Nanoseconds())/1_000, "ns/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// cutShort has n tasks wait under Limit(1), and cancels their waits when all of
// them queue to have the slot again.
func cutShort(b *testing.B, n int) {
	check(b, true, async.Scope(context.Background(), func(ctx context.Context) error {
		future, promise := async.NewPromise[int](ctx)
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		running, gate := make(chan struct{}), make(chan struct{})
		for range n {
			async.Go(ctx, func(own context.Context) error {
				under, stop := context.WithCancel(own)
				defer stop()
				defer context.AfterFunc(short, stop)()
				_, _ = future.Wait(under)
				return nil
			})
		}
		async.Go(ctx, func(context.Context) error { close(running); <-gate; return nil })
		<-running // the last: all others wait
		promise.Resolve(1)
		cancel()
		close(gate)
		return nil
	}, async.Limit(1)))
}

// grows reports how long one of the n steps of f takes.
func grows(b *testing.B, n int, f func()) {
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/step")
	b.ReportMetric(0, "ns/op")
}
