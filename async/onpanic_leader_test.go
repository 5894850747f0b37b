package async_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// An askedCtx calls asked whenever Err of it is.
type askedCtx struct {
	context.Context
	asked func()
}

func (c askedCtx) Err() error {
	c.asked()
	return c.Context.Err()
}

// TestAPanicThatDoesNotCountCancelsThoughALeaderIsAboutTo: the leader of the task has
// ended, and has not cancelled it yet, when the handler of the task panics. What only
// repeats that panic is no failure all the same.
func TestAPanicThatDoesNotCountCancelsThoughALeaderIsAboutTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		var looks atomic.Int32
		leads, pardoned := make(chan struct{}), make(chan struct{})
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			ctx = askedCtx{context.WithoutCancel(ctx), func() {
				if ended.Load() && looks.Add(1) == 2 { // the leader counts, and is about to cancel
					close(leads)
					<-pardoned
				}
			}}
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				async.Go(ctx, func(context.Context) error {
					synctest.Wait() // until nobody else looks
					ended.Store(true)
					return nil
				}, async.Leader())
				<-leads
				go func() { synctest.Wait(); close(pardoned) }()
				panic("no harm")
			})
			return nil
		}, async.OnPanic(carryOn)))
		require.GreaterOrEqual(t, looks.Load(), int32(2))
	})
}
