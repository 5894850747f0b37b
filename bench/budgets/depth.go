package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/bench/internal/measure"
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

// depthRows is B13: what a level or a call costs at depth 10,000, beside depth 10.
func depthRows(cfg config) (rows []measure.Row) {
	for _, d := range deep {
		row := grown(d.do, 10, 10_000, cfg.rounds)
		row.ID, row.What, row.Peer = "B13", d.name+", 10,000 deep", "10 deep"
		if !strings.HasPrefix(d.name, "by hand") {
			row.Budget = measure.AtMost(2)
		}
		rows = append(rows, row)
		if d.name == "Err" {
			rows = append(rows, measure.Row{ID: "B13", What: "Err, 10,000 deep", Unit: "ns", Ours: row.Ours, Budget: measure.AtMost(30)})
		}
	}
	return rows
}

// grown is a row of the nanoseconds of processor time of a unit at two sizes, which take turns.
// In a round the small one is done so often that both do as many units.
func grown(do func(n int) (time.Duration, int), few, many, rounds int) measure.Row {
	do(few)
	took := measure.Turns(rounds, func() float64 {
		spent, units := do(many)
		return float64(spent) / float64(units)
	}, func() float64 {
		var all time.Duration
		done := 0
		for range many / few {
			spent, units := do(few)
			all, done = all+spent, done+units
		}
		return float64(all) / float64(done)
	})
	return measure.Row{Unit: "ns", Ours: took[0], Theirs: took[1], Ratio: true}
}

// depths are the operations of B14 that go deep.
func depths() (all []growing) {
	for _, d := range deep {
		all = append(all, growing{d.name, true, d.do})
	}
	return append(all,
		growing{"the deepest returns an error, a level", true, levels(func(n int) { mustBe(errors.Is(failing(context.Background(), n), errStopped)) })},
		growing{"nested WithTimeout and Scope, a level", true, levels(func(n int) { must(timed(context.Background(), n)) })},
		growing{"nested Limit(2), Execute and Await inside", true, levels(func(n int) { must(limited(context.Background(), n)) })},
	)
}

func failing(ctx context.Context, depth int) error {
	if depth == 0 {
		return errStopped
	}
	return async.Scope(ctx, func(ctx context.Context) error { return failing(ctx, depth-1) })
}

func timed(ctx context.Context, depth int) error {
	if depth == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	return async.Scope(ctx, func(ctx context.Context) error { return timed(ctx, depth-1) })
}

func limited(ctx context.Context, depth int) error {
	if depth == 0 {
		_, err := async.Execute(ctx, answer).Await(ctx, 0)
		return err
	}
	return async.Scope(ctx, func(ctx context.Context) error { return limited(ctx, depth-1) }, async.Limit(2))
}
