package byhand

import (
	"context"

	"golang.org/x/sync/errgroup"
)

func Copy(
	ctx context.Context,
	read func(ctx context.Context, lines chan<- string) error,
	prepare func(ctx context.Context) error,
	write func(ctx context.Context, lines <-chan string) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	lines := make(chan string)
	g.Go(func() error {
		defer close(lines)
		return read(ctx, lines)
	})
	if err := prepare(ctx); err != nil {
		return err
	}
	for range 4 {
		g.Go(func() error { return write(ctx, lines) })
	}
	return g.Wait()
}
