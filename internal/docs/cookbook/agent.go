package cookbook

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// An Agent runs jobs that a server gives to it.
type Agent interface {
	Register(ctx context.Context) error
	Unregister(ctx context.Context) error
	Follow(ctx context.Context) error // what the server says; nil when that says goodbye
	Health(ctx context.Context) error
	Work(ctx context.Context) error // runs jobs until ctx is done
}

// RunAgent runs an agent until the server says goodbye, which is no failure. It
// returns when all its work has ended and it is not registered any more.
func RunAgent(ctx context.Context, a Agent, workers int) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		if err := a.Register(ctx); err != nil {
			return err
		}
		async.OnExit(ctx, func(ctx context.Context, _ error) error { return a.Unregister(ctx) })
		async.Go(ctx, a.Follow, async.Leader())
		async.Go(ctx, func(ctx context.Context) error {
			_, err := async.Repeat(ctx, async.Every(10*time.Second), a.Health, async.Tolerate(5)).Join(ctx)
			return err
		}, async.Name("health"), async.Daemon())
		for range workers {
			async.Go(ctx, a.Work)
		}
		return nil
	}, async.Name("agent"))
}
