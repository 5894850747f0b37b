package async_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// The event of an end says whether the error only repeats why the task was told to stop. A task that has failed by itself has no
// cause beside its error, though its scope was cancelled for that.
func TestEventsTellEchoes(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		echo := make(map[string]bool)
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, async.Name("sibling"))
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, async.Name("child"))
				return errPlanted
			}, async.Name("fails"))
			return nil
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == async.EventEnd {
				require.Equal(t, e.Task != "fails", errors.Is(e.Cause, errPlanted), e.Task)
				echo[e.Task] = e.Echo
			}
		})))
		require.Equal(t, map[string]bool{"sibling": true, "fails": false, "child": true}, echo)
	})
}
