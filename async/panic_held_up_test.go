package async_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAPanickingTaskWithAStubbornChildCancelsItsScopeAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); tookAbout(t, 0, start); return nil })
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
					plantedPanic()
					return nil
				})
				return nil
			})
		})
		require.ErrorIs(t, err, errPlanted)
	})
}

// TestAPanicThatWaitsToBeRaisedIsPrintedOnce wherever it happened and whoever
// holds it up: with its stack, once, and with who is waited for.
func TestAPanicThatWaitsToBeRaisedIsPrintedOnce(t *testing.T) {
	stays := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(d); return nil }
	}
	for name, test := range map[string]struct {
		body func(ctx context.Context) error
		left string
	}{
		"on its way through scopes": {func(ctx context.Context) error {
			async.Go(ctx, stays(time.Minute))
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, stays(20*time.Second), async.Name("inner"))
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		}, "\tinner ("},
		"of the body": {func(ctx context.Context) error {
			async.Go(ctx, stays(time.Hour), async.Name("stubborn"))
			plantedPanic()
			return nil
		}, "\tstubborn ("},
		"while the body goes on": {func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
			return stays(time.Minute)(ctx)
		}, "\touter ("},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				require.ErrorIs(t, panicOrError(func() error { return async.Scope(ctx, test.body, async.Name("outer")) }), errPlanted)
				text := fmt.Sprint(check())
				require.Equal(t, 1, strings.Count(text, "has waited"), text)
				require.Equal(t, 1, strings.Count(text, "plantedPanic("), text)
				require.Contains(t, text, test.left)
			})
		})
	}
}
