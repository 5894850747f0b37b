package main

import (
	"context"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A phase is a number of requests that can be made side by side, and the time
// there is for all of them.
type phase struct {
	name     string
	budget   time.Duration
	requests []request
}

// A cleaner cleans up.
type cleaner struct {
	client   *http.Client
	parallel int // requests at the same time
	out      *cli.Out
}

// cleanUp goes through the phases in order, all of them, whatever comes of each.
// It returns a leftError if something is left.
func (c *cleaner) cleanUp(ctx context.Context, plan []phase) error {
	left := new(leftError)
	for _, p := range plan {
		c.out.Printf("phase %s, at most %v\n", p.name, p.budget)
		for _, r := range c.do(ctx, p) {
			c.out.Printf("  %v\n", r)
			left.of++
			if r.err != nil {
				left.errs = append(left.errs, &removalError{p, r})
			}
		}
	}
	if len(left.errs) > 0 {
		return left
	}
	return nil
}

// do makes the requests of a phase side by side, and returns what came of each,
// in their order. When it returns, all have ended.
//
// The shield is the time of this phase: it begins now, however long the phases
// before have taken, and neither the job's end nor anything else cuts it short.
// The limit is one of a scope, so that a resource which is waited for before the
// next attempt keeps nobody else from his turn.
func (c *cleaner) do(ctx context.Context, p phase) []removal {
	removals := make([]removal, len(p.requests))
	_ = async.Shield(ctx, p.budget, func(ctx context.Context) error { // what went wrong is in the removals
		return async.Scope(ctx, func(ctx context.Context) error {
			all := async.ForkJoin(ctx, p.requests, c.remove)
			results, err := all.Await(context.WithoutCancel(ctx), 0) // the end of ctx ends the work, and that the wait
			for i, r := range results {
				removals[i] = r.Value
				if r.Value.request == (request{}) { // its turn did not come
					removals[i] = removal{request: p.requests[i], err: r.Err}
				}
			}
			return err
		}, async.Name("phase "+p.name), async.Limit(c.parallel))
	})
	return removals
}
