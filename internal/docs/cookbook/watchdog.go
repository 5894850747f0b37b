package cookbook

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// RunInPod runs work while phase says, every interval, that the pod is
// running. The third bad answer in a row aborts work: its context is cancelled
// and kill is called, both with a *async.WatchdogError as the cause; so does
// the end of ctx, with another cause. Work that does not look at its context
// has to end when kill has done its part.
func RunInPod(
	ctx context.Context,
	work func(ctx context.Context) error,
	interval time.Duration,
	phase func(ctx context.Context) (string, error),
	kill func(ctx context.Context, cause error) error,
) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Watch(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, work(ctx)
		}, async.Every(interval), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, interval) // an answer that does not come is a bad one
			defer cancel()
			switch p, err := phase(ctx); {
			case err != nil:
				return fmt.Errorf("phase of the pod: %w", err)
			case p != "Running":
				return fmt.Errorf("pod is %s", p)
			default:
				return nil
			}
		},
			async.Tolerate(2),
			async.OnAbort(kill),
			async.HookTimeout(10*time.Second)).Await(ctx, 0)
		return err
	})
}
