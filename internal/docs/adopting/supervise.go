package adopting

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

var errDenied = errors.New("access denied")

// Supervise runs workers side by side. One that fails or panics is called again,
// after 0.1 s at first and 10 s in the end; one that returns nil has ended. The
// fifth failure within a minute ends them all.
func Supervise(ctx context.Context, workers ...func(ctx context.Context) error) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		for _, work := range workers {
			async.Go(ctx, work, async.Restart(async.RestartPolicy{
				Interval: async.Jitter(0.2, async.Backoff(100*time.Millisecond, 10*time.Second)),
				Attempts: 5, Within: time.Minute, Healthy: time.Minute,
			}))
		}
		return nil
	})
}

// Connected is a worker that is not called again when it is not let in.
func Connected(connect func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		err := connect(ctx)
		if errors.Is(err, errDenied) {
			return async.Final(err)
		}
		return err
	}
}
