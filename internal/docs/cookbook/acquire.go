package cookbook

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/async"
)

// ErrStopping is why an agent that is to stop acquires no job.
var ErrStopping = errors.New("agent is stopping")

// Acquire acquires a job, unless stop is closed before it has one, and runs it,
// also if stop is closed meanwhile.
func Acquire[J any](
	ctx context.Context, stop <-chan struct{}, acquire func(ctx context.Context) (J, error),
	run func(ctx context.Context, job J) error,
) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		job, err := async.Execute(ctx, acquire, async.StopOn(stop, ErrStopping)).Join(ctx)
		if err != nil {
			return err
		}
		return run(ctx, job)
	})
}
