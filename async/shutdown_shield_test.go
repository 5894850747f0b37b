package async_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestShutdownLeavesShieldsAtTheRootTheirTime: those that were opened outside of
// all scopes, after the scope of their ctx has ended, and by a late exit hook.
func TestShutdownLeavesShieldsAtTheRootTheirTime(t *testing.T) {
	ended := func(ctx context.Context) (ended context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
		return ended
	}
	for name, shield := range map[string]func(ctx context.Context, f func(context.Context) error) error{
		"outside of all scopes": func(ctx context.Context, f func(context.Context) error) error {
			return async.Shield(ctx, time.Minute, f)
		},
		"after the end of a scope": func(ctx context.Context, f func(context.Context) error) error {
			return async.Shield(ended(ctx), time.Minute, f)
		},
		"late exit hook": func(ctx context.Context, f func(context.Context) error) (err error) {
			async.OnExit(ended(ctx), func(ctx context.Context, _ error) error { err = f(ctx); return nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(context.WithoutCancel(ctx))
				var got error
				go func() {
					got = shield(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3*time.Second) })
				}()
				synctest.Wait()
				hard, cancel := context.WithCancel(ctx)
				cancel()
				async.Detach(ctx, "left", func(ctx context.Context) error { <-ctx.Done(); return nil })
				var left *async.StragglerError
				require.ErrorAs(t, async.Shutdown(hard), &left, "it is named")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.NoError(t, errors.Join(got, check()))
			})
		})
	}
}
