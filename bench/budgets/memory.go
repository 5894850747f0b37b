package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/bench/internal/measure"
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

// delayedRows is B8's heap after many delayed tasks.
func delayedRows(config) []measure.Row {
	const n = 100_000
	return []measure.Row{{ID: "B8", What: fmt.Sprintf("heap after %d delayed and cancelled", n), Unit: "MB", Ours: measure.Sample{cancelledLater(n) / 1e6}, Budget: measure.AtMost(1)}}
}

// waitingRows is B11.
func waitingRows(cfg config) (rows []measure.Row) {
	for _, w := range waits() {
		rows = append(rows, measure.Row{
			ID: "B11", What: fmt.Sprintf("a task of %d %s, more than one by hand", cfg.waiting, w.name), Unit: "B",
			Ours: overHand(w.ours, w.hand, cfg.waiting), Budget: measure.AtMost(400),
		})
	}
	return rows
}

// overHand returns how many bytes a task of ours takes more than one by hand.
// The first run of each is for the goroutines, which the runtime keeps.
func overHand(ours, hand func(n int) float64, n int) (over measure.Sample) {
	hand(n)
	ours(n)
	took := measure.Turns(3, func() float64 { return ours(n) }, func() float64 { return hand(n) })
	for i := range took[0] {
		over = append(over, took[0][i]-took[1][i])
	}
	return over
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

// queuedRows is B15: what a task takes that queues for a Limit.
func queuedRows(cfg config) (rows []measure.Row) {
	for _, way := range []struct {
		name  string
		limit float64
		start func(ctx context.Context)
	}{
		{"Go", 420, func(ctx context.Context) { async.Go(ctx, nothing) }},
		{"Execute", 470, func(ctx context.Context) { async.Execute(ctx, answer) }},
	} {
		bytes := measure.Turns(3, func() float64 { return queued(cfg.waiting, way.start) })
		rows = append(rows, measure.Row{
			ID: "B15", What: fmt.Sprintf("a task of %d that queue for a Limit, %s", cfg.waiting, way.name), Unit: "B",
			Ours: bytes[0], Budget: measure.AtMost(way.limit),
		})
	}
	c := contest{id: "B15", what: "10,000 Go, Limit(2)", ours: always(limitedScope), allocs: -1, tasks: manyItems,
		peers: []rival{{"errgroup.SetLimit", 2.2, limitedGroup(2, func(int) error { return nil })}}}
	return append(rows, c.rows(cfg)...)
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
