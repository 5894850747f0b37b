package adopting

import (
	"context"

	"github.com/ambit-go/ambit/async"
)

// First runs actors side by side until one of them returns, with an error or
// without. Then it stops the others, and returns when all have ended.
func First(ctx context.Context, actors ...func(ctx context.Context) error) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		for _, actor := range actors {
			async.Go(ctx, actor, async.Leader())
		}
		return nil
	})
}
