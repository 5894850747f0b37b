package async_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestABareGoroutineDoesNotTakeTheSlotOfAHandlerThatWaits: two waits of one
// task, the first of which ends while the other needs the slot lent.
func TestABareGoroutineDoesNotTakeTheSlotOfAHandlerThatWaits(t *testing.T) {
	limitedScope(t, 1, func(_ *testing.T, ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			f := async.Execute(ctx, stubborn(time.Second, 1, nil))
			g := async.Execute(ctx, answer)
			go func() { _, _ = f.Wait(ctx) }()
			synctest.Wait()
			return second(g.Await(ctx, time.Minute))
		})
		return nil
	})
}

// TestNoWaitUnderALimitIsForgotten has a handler and bare goroutines wait under
// one ctx, which lend and claim the one slot by turns. A wait that is not woken
// hangs.
func TestNoWaitUnderALimitIsForgotten(t *testing.T) {
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			var bare sync.WaitGroup
			stop := make(chan struct{})
			defer bare.Wait()
			defer close(stop)
			for range 2 {
				bare.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							_, _ = async.Execute(ctx, answer).Wait(ctx)
						}
					}
				})
			}
			for range 30_000 / raceFactor {
				if _, err := async.Execute(ctx, answer).Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	}, async.Limit(64)))
}
