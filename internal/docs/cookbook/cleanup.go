package cookbook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Resource is something that a job has made and that is to be removed.
type Resource struct {
	Name   string
	Remove func(ctx context.Context) error
}

// Cleanup removes what a job has made, whether or not ctx has been cancelled:
// phase after phase, the resources of a phase side by side. Each phase has
// budget for itself. The error names all that could not be removed.
func Cleanup(ctx context.Context, budget time.Duration, phases ...[]Resource) error {
	var failed []error
	for _, phase := range phases {
		failed = append(failed, async.Shield(ctx, budget+time.Second, func(ctx context.Context) error {
			return removeAll(ctx, phase, budget)
		}))
	}
	return errors.Join(failed...)
}

// removeAll removes resources side by side, each within limit.
func removeAll(ctx context.Context, resources []Resource, limit time.Duration) error {
	remove := func(ctx context.Context, r Resource) (struct{}, error) { return struct{}{}, r.Remove(ctx) }
	results, err := async.ForkJoin(ctx, resources, remove, async.ItemTimeout(limit)).Await(ctx, 0)
	failed := []error{err}
	for i, r := range results {
		if r.Err != nil {
			failed = append(failed, fmt.Errorf("remove %s: %w", resources[i].Name, r.Err))
		}
	}
	return errors.Join(failed...)
}
