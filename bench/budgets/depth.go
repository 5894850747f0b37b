package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// deep is what must not cost more the deeper it is done. Each does it n levels
// deep and returns the processor time and for how many levels or calls that was.
var deep = []struct {
	name string
	do   func(depth int) (spent time.Duration, units int)
}{
	{"nested Scope, a level", levels(func(depth int) { nested(context.Background(), depth, func(context.Context) {}) })},
	{"nested Start, Await, a level", levels(func(depth int) {
		scoped(func(ctx context.Context) { must(startAndAwait(ctx, depth)) })
	})},
	{"by hand: nested contexts, a level", levels(func(depth int) { nestedByHand(context.Background(), depth) })},
	{"by hand: nested go, channel, a level", levels(func(depth int) { <-startByHand(depth) })},
	{"Err", asked(10_000, func(ctx context.Context) { must(ctx.Err()) })},
	{"a Scope that calls Done", asked(100, func(ctx context.Context) {
		must(async.Scope(ctx, func(ctx context.Context) error { ctx.Done(); return nil }))
	})},
	{"Value that nobody has", asked(10_000, func(ctx context.Context) { mustBe(ctx.Value(missing{}) == nil) })},
	{"Deadline", asked(10_000, func(ctx context.Context) { ctx.Deadline() })},
}

type missing struct{}

// levels is work whose cost is that of its levels.
func levels(f func(depth int)) func(int) (time.Duration, int) {
	return func(depth int) (time.Duration, int) {
		start := cpu()
		f(depth)
		return cpu() - start, depth
	}
}

// asked is a call that is made in a task under so many scopes.
func asked(calls int, f func(ctx context.Context)) func(int) (time.Duration, int) {
	return func(depth int) (spent time.Duration, units int) {
		nested(context.Background(), depth, func(ctx context.Context) {
			start := cpu()
			for range calls {
				f(ctx)
			}
			spent = cpu() - start
		})
		return spent, calls
	}
}

// nested calls f in depth scopes.
func nested(ctx context.Context, depth int, f func(ctx context.Context)) {
	if depth == 0 {
		f(ctx)
		return
	}
	must(async.Scope(ctx, func(ctx context.Context) error { nested(ctx, depth-1, f); return nil }))
}

// startAndAwait nests Start and Await.
func startAndAwait(ctx context.Context, depth int) error {
	if depth == 0 {
		return nil
	}
	_, err := async.Start(ctx, func(ctx context.Context) error { return startAndAwait(ctx, depth-1) }).Await(ctx, 0)
	return err
}

// nestedByHand calls itself with a context of its own at each level: how much of a level's
// growth is that of the stack.
func nestedByHand(ctx context.Context, depth int) {
	if depth > 0 {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		nestedByHand(ctx, depth-1)
	}
}

// startByHand nests goroutines that wait for each other: how much of a level's growth is that
// of many goroutines.
func startByHand(depth int) <-chan error {
	done := make(chan error, 1)
	go func() {
		var err error
		if depth > 0 {
			err = <-startByHand(depth - 1)
		}
		done <- err
	}()
	return done
}

// printDepth measures B13.
func printDepth(t table, cfg config) {
	if !cfg.only.MatchString("B13") {
		return
	}
	for _, d := range deep {
		_, ns, r := grown(d.do, 10, 10_000, cfg.rounds)
		budget, verdict := "2", kept(r, 2)
		if strings.HasPrefix(d.name, "by hand") {
			budget, verdict = "-", "-"
		}
		t.row("B13", d.name+", depth 10,000 / 10", fmt.Sprintf("%.2f", r), budget, verdict)
		if d.name == "Err" {
			t.row("B13", "Err at depth 10,000", fmt.Sprintf("%.0f ns", ns), "30 ns", kept(ns, 30))
		}
	}
}

// grown returns the nanoseconds of a unit at two sizes, and how much the large
// one's are of the small one's: medians of rounds in which the two take turns.
// In a round the small one is done so often that both do as many units.
func grown(do func(n int) (time.Duration, int), few, many, rounds int) (small, large, ratio float64) {
	do(few)
	var smalls, larges, ratios []float64
	for range rounds {
		spent, units := do(many)
		l := float64(spent) / float64(units)
		var all time.Duration
		done := 0
		for range many / few {
			spent, units := do(few)
			all, done = all+spent, done+units
		}
		s := float64(all) / float64(done)
		smalls, larges, ratios = append(smalls, s), append(larges, l), append(ratios, l/s)
	}
	return median(smalls), median(larges), median(ratios)
}
