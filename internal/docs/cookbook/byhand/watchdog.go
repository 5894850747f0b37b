package byhand

import (
	"context"
	"fmt"
	"time"
)

func RunInPod(
	ctx context.Context,
	work func(context.Context) error,
	interval time.Duration,
	phase func(context.Context) (string, error),
	kill func(context.Context),
) error {
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	status := make(chan error)
	go func() {
		defer close(status)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
				if p, err := phase(ctx); err != nil || p != "Running" {
					status <- fmt.Errorf("pod is %q: %w", p, err)
					return
				}
			}
		}
	}()
	select {
	case err := <-ended:
		return err
	case err := <-status:
		return err
	case <-ctx.Done():
		kill(ctx)
		return ctx.Err()
	}
}
