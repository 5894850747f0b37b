package async_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func panicsFirst(context.Context) error { panic(http.ErrAbortHandler) }

func panicsLater(context.Context) error { panic(http.ErrAbortHandler) }

// TestAPanicThatWasRecoveredIsNoLaterOne, though both have the same value, as
// those of servers have: the later one has its own stack, and is told.
func TestAPanicThatWasRecoveredIsNoLaterOne(t *testing.T) {
	var told []string
	ctx := asynctest.Context(t)
	err := async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, func(ctx context.Context) error {
			require.Equal(t, http.ErrAbortHandler, recovered(func() { _ = async.Scope(ctx, panicsFirst, async.Name("first")) }))
			return panicsLater(ctx)
		}, async.Name("second")).Await(ctx, 0)
		requirePanic(t, err, "second", "panicsLater")
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventPanic {
			told = append(told, e.Task)
		}
	})))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, told)
}

// TestAPanicThatIsPassedOnIsOne, also by a function that has recovered it: the scopes
// further out raise what the first has raised, and its cause matches that.
func TestAPanicThatIsPassedOnIsOne(t *testing.T) {
	ctx := asynctest.Context(t)
	var cause error
	_, err := async.Start(ctx, func(ctx context.Context) error {
		defer func() { panic(recover()) }()
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, panicsFirst, async.Name("first"))
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
	}, async.Name("second")).Await(ctx, 0)
	requirePanic(t, err, "first", "panicsFirst")
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, cause, err)
	require.NotContains(t, err.Error(), "\n", "that of a panic which is returned is one line")
}

func requirePanic(t *testing.T, err error, task, function string) {
	var p *async.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, task, p.Task)
	require.Contains(t, string(p.Stack), function)
}
