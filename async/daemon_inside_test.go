package async_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestWhatADaemonHasStartedStopsQuietly when the owner of the daemon has told it to.
func TestWhatADaemonHasStartedStopsQuietly(t *testing.T) {
	serve := func(ctx context.Context) error { <-ctx.Done(); return errors.New("http: Server closed") }
	for name, start := range map[string]func(ctx context.Context) error{
		"a task":   func(ctx context.Context) error { async.Go(ctx, serve); return nil },
		"a future": func(ctx context.Context) error { async.Start(ctx, serve); return nil },
		"a scope": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, serve); return nil })
		},
		"a body": func(ctx context.Context) error { return async.Scope(ctx, serve) },
		"items": func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2}), func(ctx context.Context, _ int) error { return serve(ctx) })
		},
		"a fork": func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1, 2}, func(ctx context.Context, _ int) (int, error) { return 0, serve(ctx) })
			return nil
		},
		"deep": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, serve); return nil })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, start, async.Daemon())
					return nil
				}))
				require.Equal(t, errPlanted, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, start, async.Daemon())
					time.Sleep(time.Second)
					return errPlanted
				}), "it adds nothing")
			})
		})
	}
}

// TestWhatIsLoudInADaemonIsToldOnce, and is why the scope of the daemon was cancelled.
func TestWhatIsLoudInADaemonIsToldOnce(t *testing.T) {
	for name, daemon := range map[string]func(ctx context.Context) error{
		"a hook": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return errPlanted })
			return async.Sleep(ctx, time.Hour)
		},
		"a hook of a task of it": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { return errPlanted })
				<-ctx.Done()
				return errors.New("http: Server closed")
			})
			return nil
		},
		"a failure before": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errPlanted })
			<-ctx.Done()
			return nil
		},
		"a time limit of a task of it": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, async.Timeout(-1))
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var seen error
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(_ context.Context, outcome error) error { seen = outcome; return nil })
					async.Go(ctx, daemon, async.Daemon())
					time.Sleep(time.Second) // it may fail before it is dismissed
					return nil
				})
				require.ErrorIs(t, err, errPlanted)
				require.Equal(t, seen, err)
				var e *async.ScopeError
				if errors.As(err, &e) { // with a time limit, why the task was stopped
					require.NotErrorIs(t, e.Cause, errPlanted)
				}
			})
		})
	}
}
