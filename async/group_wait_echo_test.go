package async_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func slowToStop(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(10 * time.Millisecond)
	return nil
}

// groupWaits are waits for a group whose task takes its time to stop.
var groupWaits = map[string]func(ctx context.Context) error{
	"Wait": func(ctx context.Context) error {
		g := async.NewGroup(ctx)
		_ = g.Go(slowToStop)
		return g.Wait(ctx)
	},
	"Stop": func(ctx context.Context) error {
		g := async.NewGroup(ctx)
		_ = g.Go(slowToStop)
		<-ctx.Done()
		return g.Stop(ctx, errStop)
	},
}

func TestAWaitForAGroupThatItsOwnCancelledScopeCutsShortIsNoFailure(t *testing.T) {
	for name, wait := range groupWaits {
		t.Run(name+", under a leader", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, wait)
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Millisecond); return nil }, async.Leader())
					return nil
				}))
			})
		})
		t.Run(name+", beside a failure", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, errPlanted, async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, wait)
					time.Sleep(time.Millisecond)
					return errPlanted
				}))
			})
		})
		t.Run(name+", of a ctx of its own is one", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left *async.StragglerError
				require.ErrorAs(t, async.Scope(t.Context(), func(ctx context.Context) error {
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					defer cancel()
					return wait(short)
				}), &left)
			})
		})
	}
}
