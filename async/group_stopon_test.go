package async_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestAGroupIsCancelledWhenAChannelCloses(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for name, early := range map[string]bool{"with a task": false, "at rest": true} {
			ch := make(chan struct{})
			g := async.NewGroup(ctx, async.StopOn(ch, errStop))
			if early {
				close(ch)
			}
			require.NoError(t, g.Go(func(ctx context.Context) error {
				<-ctx.Done()
				require.Equal(t, errStop, context.Cause(ctx), name)
				return nil
			}))
			synctest.Wait()
			if !early {
				close(ch)
			}
			require.NoError(t, g.Wait(ctx), name)
		}
	})
}

// TestAGroupThatStopsOnAChannelLeavesNothing when it ends before that is closed.
func TestAGroupThatStopsOnAChannelLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx, async.StopOn(make(chan struct{}), errStop))
		require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }))
		synctest.Wait()
		require.NoError(t, g.Stop(ctx, nil))
		// The bubble fails if a goroutine is left.
	})
}
