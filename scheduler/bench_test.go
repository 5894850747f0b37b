package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/scheduler"
)

// Budgets B7 and B8 of the design. Compare ratios of runs that alternate, not
// times. Every function that is posted is one and the same and counts.

var peerNames = []string{"buffered", "worker", "unbuffered", "slice", "serializer", "mailbox"}

// BenchmarkB7 posts as fast as 1, 8 and 64 producers can.
func BenchmarkB7(b *testing.B) {
	for _, producers := range []int{1, 8, 64} {
		for _, name := range peerNames {
			b.Run(fmt.Sprintf("producers=%d/%s", producers, name), func(b *testing.B) {
				b.ReportAllocs()
				p := peers[name]()
				var ran atomic.Int64
				count := func() { ran.Add(1) }
				var all sync.WaitGroup
				for i := range producers {
					n := b.N / producers
					if i == 0 {
						n += b.N % producers
					}
					all.Go(func() {
						for range n {
							p.post(count)
						}
					})
				}
				all.Wait()
				p.close()
				if int(ran.Load()) != b.N {
					b.Fatal("lost", b.N-int(ran.Load()))
				}
			})
		}
	}
}

// BenchmarkPingPong has one function outstanding: what waking costs.
func BenchmarkPingPong(b *testing.B) {
	for _, name := range peerNames {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			p := peers[name]()
			pong := make(chan struct{})
			ping := func() { pong <- struct{}{} }
			for b.Loop() {
				p.post(ping)
				<-pong
			}
			p.close()
		})
	}
}

// BenchmarkBursts posts 100 functions and waits until all have run.
func BenchmarkBursts(b *testing.B) {
	for _, name := range peerNames {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			p := peers[name]()
			done := make(chan struct{})
			nothing, last := func() {}, func() { done <- struct{}{} }
			for b.Loop() {
				for range 99 {
					p.post(nothing)
				}
				p.post(last)
				<-done
			}
			p.close()
		})
	}
}

// BenchmarkB8 schedules and cancels, with so many tasks before and as many
// behind.
func BenchmarkB8(b *testing.B) {
	for _, depth := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			b.ReportAllocs()
			w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
			open := make(chan struct{})
			_ = w.Post(func() { <-open })
			nothing := func(context.Context) {}
			for range depth {
				_, _ = w.Schedule(nothing)
			}
			for b.Loop() {
				t, _ := w.Schedule(nothing)
				if !t.Cancel() {
					b.Fatal("not cancelled")
				}
			}
			close(open)
			_ = w.Drain(context.Background())
		})
		b.Run(fmt.Sprintf("delayed/depth=%d", depth), func(b *testing.B) {
			b.ReportAllocs()
			w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
			nothing := func(context.Context) {}
			for i := range depth {
				_, _ = w.ScheduleAfter(time.Hour+time.Duration(i), nothing)
			}
			for b.Loop() {
				t, _ := w.ScheduleAfter(time.Hour, nothing)
				if !t.Cancel() {
					b.Fatal("not cancelled")
				}
			}
			_ = w.Close()
		})
	}
}

// BenchmarkThousandWorkers has a thousand workers with 100 tasks each share a
// pool of four goroutines. It reports how much longer the last worker took than
// the first, which had the same to do.
func BenchmarkThousandWorkers(b *testing.B) {
	const workers, tasks = 1000, 100
	for _, batch := range []int{64, 1} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			b.ReportAllocs()
			var ratios []float64
			for b.Loop() {
				s := scheduler.New(scheduler.Limited(semaphore.NewWeighted(4)), scheduler.Batch(batch))
				open := make(chan struct{})
				var finish [workers]time.Duration
				var all sync.WaitGroup
				start := time.Now()
				for i := range workers {
					w := s.NewWorker(context.Background())
					all.Add(1)
					_ = w.Post(func() { <-open })
					left := tasks
					for range tasks {
						_ = w.Post(func() {
							if left--; left == 0 {
								finish[i] = time.Since(start)
								all.Done()
							}
						})
					}
				}
				start = time.Now()
				close(open)
				all.Wait()
				_ = s.Drain(context.Background())
				ratios = append(ratios, float64(slices.Max(finish[:]))/float64(slices.Min(finish[:])))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "last/first")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/workers/tasks, "ns/task")
		})
	}
}
