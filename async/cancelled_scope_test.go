package async_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestTheFirstCauseIsSeenByAllBelow(t *testing.T) {
	outer, boom := errors.New("outer"), errors.New("boom")
	for range 200 {
		ctx, cancel := context.WithCancelCause(context.Background())
		var wrong atomic.Int64
		var err error
		_ = async.Scope(ctx, func(ctx context.Context) error {
			err = async.Scope(ctx, func(ctx context.Context) error {
				var ready sync.WaitGroup
				ready.Add(100)
				for i := range 100 {
					async.Go(ctx, func(ctx context.Context) error {
						done := ctx.Done()
						ready.Done()
						<-done
						if i == 0 {
							cancel(outer)
						}
						if context.Cause(ctx) == outer {
							wrong.Add(1)
						}
						return ctx.Err()
					})
				}
				ready.Wait()
				return boom
			})
			return nil
		})
		require.Equal(t, boom, err)
		require.Zero(t, wrong.Load(), "tasks saw another cause than their scope's")
	}
}

// TestNoCancellationIsMissed: a scope is cancelled while tasks in it start,
// look at their contexts for the first time, and wait.
func TestNoCancellationIsMissedByALateLook(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 300 {
		err := async.Scope(root, func(ctx context.Context) error {
			for j := range 8 {
				async.Go(ctx, func(ctx context.Context) error {
					switch (i + j) % 5 {
					case 0:
						<-ctx.Done()
					case 1:
						derived, cancel := context.WithCancel(ctx)
						defer cancel()
						<-derived.Done()
						require.ErrorIs(t, context.Cause(derived), errCancelBoom)
					case 2:
						never, _ := async.NewPromise[int](root)
						_, err := never.Wait(ctx)
						require.ErrorIs(t, err, errCancelBoom)
					case 3:
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
					case 4:
						called := make(chan struct{})
						context.AfterFunc(ctx, func() { close(called) })
						<-called
					}
					return nil
				})
			}
			async.Go(ctx, func(context.Context) error { return errCancelBoom })
			return nil
		})
		require.ErrorIs(t, err, errCancelBoom)
	}
}

// TestAProducerStartedInACancelledScopeStillClosesItsChannel: were it skipped,
// the consumer would wait for ever.
func TestAProducerStartedInACancelledScopeStillClosesItsChannel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))
	err := async.Scope(ctx, func(ctx context.Context) error {
		c := make(chan int)
		async.Go(ctx, func(ctx context.Context) error {
			defer close(c)
			return context.Cause(ctx)
		})
		for range c {
		}
		return nil
	})
	require.ErrorContains(t, err, "too late")
	require.ErrorIs(t, err, context.Canceled)
}
