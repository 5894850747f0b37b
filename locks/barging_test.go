package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

func TestAnUnfairRequestBehindManyFollowsAHintAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		one, two := held(t, w, "pool", locks.Permit(3)), held(t, w, "pool", locks.Permit(3))
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 20 { // more than are asked for at a hint, and none of them fits
				async.Go(ctx, func(ctx context.Context) error { return w.m.WithPermits(ctx, "pool", 3, 3, nothing) })
			}
			synctest.Wait()
			var freed time.Time
			async.Go(ctx, func(ctx context.Context) error {
				return w.m.WithPermits(ctx, "pool", 3, 2, func(context.Context) error {
					assert.Zero(t, time.Since(freed), "it does not wait for the next poll")
					two()
					return nil
				}, locks.Fair(false))
			})
			synctest.Wait()
			time.Sleep(300 * time.Millisecond)
			freed = time.Now()
			one()
			return nil
		}))
	})
}
