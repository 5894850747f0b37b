package byhand

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

type Agent interface {
	Register(ctx context.Context) error
	Unregister(ctx context.Context) error
	Follow(ctx context.Context) error // what the server says; nil when that says goodbye
	Health(ctx context.Context) error
	Work(ctx context.Context) error // runs jobs until ctx is done
}

var errGoodbye = errors.New("goodbye")

func RunAgent(ctx context.Context, a Agent, workers int) error {
	if err := a.Register(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-ctx.Done()
		return a.Unregister(context.Background())
	})
	g.Go(func() error {
		if err := a.Follow(ctx); err != nil {
			return err
		}
		return errGoodbye
	})
	g.Go(func() error {
		for {
			if err := a.Health(ctx); err != nil {
				return err
			}
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return nil
			}
		}
	})
	for range workers {
		g.Go(func() error { return a.Work(ctx) })
	}
	if err := g.Wait(); !errors.Is(err, errGoodbye) {
		return err
	}
	return nil
}
