package async_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// awaitError is a handler's own error.
type awaitError struct{ code int }

func (e *awaitError) Error() string { return fmt.Sprint("own error ", e.code) }

// stubborn returns a handler that takes d whatever its context says.
func stubborn[T any](d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(context.Context) (T, error) {
		time.Sleep(d)
		return value, err
	}
}

// obedient returns a handler that waits to be told to stop and then takes d,
// and at least a moment: an Await that expires must not find it settled.
func obedient[T any](d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		untilStopped(ctx)
		time.Sleep(d)
		return value, err
	}
}

// untilStopped waits until ctx is done and everybody else in the bubble waits.
func untilStopped(ctx context.Context) {
	<-ctx.Done()
	time.Sleep(time.Nanosecond)
}

// tookAbout fails t unless want has passed since start, and a little.
func tookAbout(t *testing.T, want time.Duration, start time.Time) {
	t.Helper()
	took := time.Since(start)
	require.GreaterOrEqual(t, took, want)
	require.LessOrEqual(t, took, want+time.Microsecond)
}

// panicFrom returns what f panics with, nil if it does not.
func panicFrom(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// rootContext returns a context without a scope, with a root of its own.
func rootContext(t *testing.T) context.Context {
	t.Helper()
	ctx, check := asynctest.Root(t.Context())
	t.Cleanup(func() { require.NoError(t, check()) })
	return ctx
}

// awaitInRootAndScope runs f with the context of a test's root and with that
// of a scope.
func awaitInRootAndScope(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Run("root", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, rootContext(t)) })
	})
	t.Run("scope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				f(t, ctx)
				return nil
			}))
		})
	})
}
