package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// waits are the ways in which tasks of B11 wait: ours, and the same by hand.
func waits() []struct {
	name       string
	ours, hand func(n int) (bytes float64)
} {
	return []struct {
		name       string
		ours, hand func(n int) float64
	}{
		{
			"blocked elsewhere",
			func(n int) float64 {
				gate := make(chan struct{})
				return tasksThatWait(n, func(context.Context) { <-gate }, func() { close(gate) })
			},
			func(n int) float64 {
				gate := make(chan struct{})
				return goroutinesThatWait(n, func(context.Context) { <-gate }, func() { close(gate) })
			},
		}, {
			"in Await, by hand at a channel or a timeout",
			func(n int) (bytes float64) {
				must(async.Scope(context.Background(), func(ctx context.Context) error {
					future, promise := async.NewPromise[int](ctx)
					bytes = tasksThatWait(n, func(ctx context.Context) {
						v, err := future.Await(ctx, time.Hour)
						mustBe(v == 1 && err == nil)
					}, func() { promise.Resolve(1) })
					return nil
				}))
				return bytes
			},
			func(n int) float64 {
				gate := make(chan struct{})
				return goroutinesThatWait(n, func(ctx context.Context) {
					ctx, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					waitForEither(ctx, gate)
				}, func() { close(gate) })
			},
		}, {
			"selecting on a ctx of their own",
			func(n int) float64 {
				gate := make(chan struct{})
				return tasksThatWait(n, func(ctx context.Context) { waitForEither(ctx, gate) }, func() { close(gate) })
			},
			func(n int) float64 {
				gate := make(chan struct{})
				return goroutinesThatWait(n, func(ctx context.Context) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					waitForEither(ctx, gate)
				}, func() { close(gate) })
			},
		},
	}
}

func waitForEither(ctx context.Context, gate <-chan struct{}) {
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

// tasksThatWait returns how many bytes each of n tasks takes while all wait.
func tasksThatWait(n int, wait func(context.Context), open func()) (bytes float64) {
	must(async.Scope(context.Background(), func(ctx context.Context) error {
		before := live()
		var started sync.WaitGroup
		started.Add(n)
		task := func(ctx context.Context) error { started.Done(); wait(ctx); return nil }
		for range n {
			async.Go(ctx, task)
		}
		started.Wait()
		bytes = settled() - before
		open()
		return nil
	}))
	return bytes / float64(n)
}

// goroutinesThatWait is tasksThatWait by hand.
func goroutinesThatWait(n int, wait func(context.Context), open func()) float64 {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := live()
	var started, ended sync.WaitGroup
	started.Add(n)
	goroutine := func() { started.Done(); wait(ctx) }
	for range n {
		ended.Go(goroutine)
	}
	started.Wait()
	bytes := settled() - before
	open()
	ended.Wait()
	return bytes / float64(n)
}

// settled is live when all have had the time to come to their wait.
func settled() float64 {
	time.Sleep(100 * time.Millisecond)
	return live()
}

// printWaiting measures B11, and B8's heap after many delayed tasks.
func printWaiting(t table, cfg config) {
	if cfg.only.MatchString("B8") {
		bytes := cancelledLater(100_000)
		t.row("B8", "heap after 100,000 delayed and cancelled", fmt.Sprintf("%.2f MB", bytes/1e6), "1 MB", kept(bytes/1e6, 1))
	}
	if !cfg.only.MatchString("B11") {
		return
	}
	for _, w := range waits() {
		over := overHand(w.ours, w.hand, cfg.waiting)
		t.row("B11", fmt.Sprintf("bytes of each of %d tasks %s", cfg.waiting, w.name), fmt.Sprintf("%.0f B", over), "400 B", kept(over, 400))
	}
}

// overHand returns how many bytes a task of ours takes more than one by hand.
// The first run of each is for the goroutines, which the runtime keeps.
func overHand(ours, hand func(n int) float64, n int) float64 {
	hand(n)
	ours(n)
	var over []float64
	for range 3 {
		over = append(over, ours(n)-hand(n))
	}
	return median(over)
}

// cancelledLater returns how much larger the heap is after n delayed tasks have
// been cancelled.
func cancelledLater(n int) float64 {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	round := func() {
		tasks := make([]scheduler.Task, n)
		for i := range tasks {
			var err error
			tasks[i], err = w.ScheduleAfter(time.Hour, func(context.Context) {})
			must(err)
		}
		for _, t := range tasks {
			t.Cancel()
		}
	}
	round()
	before := live()
	round()
	grown := live() - before
	must(w.Drain(context.Background()))
	return grown
}

// printSeeing is B12. The parts that a task has only to be seen are the two
// links in its owner's list; nobody measures that from outside.
func printSeeing(t table, cfg config) {
	if cfg.only.MatchString("B12") {
		t.row("B12", "links in the owner's list, of all that B11 measures", "16 B", "16 B", "ok")
	}
}

// printQueued measures B15: what a task takes that queues for a Limit.
func printQueued(t table, cfg config) {
	if !cfg.only.MatchString("B15") {
		return
	}
	for _, way := range []struct {
		name  string
		limit float64
		start func(ctx context.Context)
	}{
		{"Go", 420, func(ctx context.Context) { async.Go(ctx, nothing) }},
		{"Execute", 470, func(ctx context.Context) { async.Execute(ctx, answer) }},
	} {
		bytes := median([]float64{queued(cfg.waiting, way.start), queued(cfg.waiting, way.start), queued(cfg.waiting, way.start)})
		t.row("B15", fmt.Sprintf("bytes of each of %d queued tasks, %s", cfg.waiting, way.name), fmt.Sprintf("%.0f B", bytes), fmt.Sprintf("%.0f B", way.limit), kept(bytes, way.limit))
	}
	r := ratio(cfg.rounds, limitedScope, limitedGroup(2, func(int) error { return nil }))
	t.row("B15", "10,000 Go, Limit(2) / errgroup.SetLimit", fmt.Sprintf("%.2f", r), "2.2", kept(r, 2.2))
}

// queued returns how many bytes each of n tasks takes that queue for one slot.
func queued(n int, start func(ctx context.Context)) (bytes float64) {
	enough := errors.New("enough")
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		running := make(chan struct{})
		async.Go(ctx, func(ctx context.Context) error { close(running); <-ctx.Done(); return nil })
		<-running
		before := live()
		for range n {
			start(ctx)
		}
		bytes = (live() - before) / float64(n)
		return enough
	}, async.Limit(1))
	mustBe(errors.Is(err, enough))
	return bytes
}

func limitedScope(n int) {
	for range n {
		must(async.Scope(context.Background(), func(ctx context.Context) error {
			for range manyItems {
				async.Go(ctx, nothing)
			}
			return nil
		}, async.Limit(2)))
	}
}
