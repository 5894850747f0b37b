package adopting

import (
	"context"

	"github.com/ambit-go/ambit/async"
)

// Copy passes lines from one reader to four writers. It returns when all five
// have, and prepare too.
func Copy(
	ctx context.Context,
	read func(ctx context.Context, lines chan<- string) error,
	prepare func(ctx context.Context) error,
	write func(ctx context.Context, lines <-chan string) error,
) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		lines := make(chan string)
		async.Go(ctx, func(ctx context.Context) error {
			defer close(lines)
			return read(ctx, lines)
		})
		if err := prepare(ctx); err != nil {
			return err // read is cancelled and joined
		}
		for range 4 {
			async.Go(ctx, func(ctx context.Context) error { return write(ctx, lines) })
		}
		return nil
	})
}
