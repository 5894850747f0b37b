package readme

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// LoadAll loads files, all at the same time. The first failure stops the rest, and all have ended when it returns.
func LoadAll(ctx context.Context, files []string, load func(context.Context, string) error) error {
	return async.ForEach(ctx, slices.Values(files), load, async.FailFast())
}

// RunStep runs a step of a pipeline, for at most d. A step that panics fails, and one that is too slow has gone.
func RunStep(ctx context.Context, step func(context.Context) error, d time.Duration) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, step).Await(ctx, d)
		return err
	})
}
