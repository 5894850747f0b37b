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

func TestWithoutCancelFreesFromTheContextNotFromTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			derived, cancel := context.WithCancelCause(ctx)
			free := async.Start(context.WithoutCancel(derived), func(ctx context.Context) error {
				time.Sleep(time.Second)
				require.NoError(t, ctx.Err(), "free from derived")
				<-ctx.Done()
				require.Equal(t, errContext, context.Cause(ctx), "not from its scope")
				return nil
			})
			only := errors.New("only derived")
			bound := async.Start(derived, func(ctx context.Context) error {
				<-ctx.Done()
				require.Equal(t, only, context.Cause(ctx))
				return nil
			})
			cancel(only)
			time.Sleep(2 * time.Second)
			require.True(t, free.IsRunning())
			require.False(t, bound.IsRunning())
			return errContext
		})
		require.ErrorIs(t, err, errContext)
	})
}

func TestAScopeUnderWithoutCancelIsFreeFromItsContextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancel(asynctest.Context(t))
		require.NoError(t, async.Scope(context.WithoutCancel(outer), func(ctx context.Context) error {
			cancel()
			synctest.Wait()
			_, err := async.Start(ctx, func(ctx context.Context) error { return ctx.Err() }).Await(ctx, 0)
			return err
		}))
	})
}
