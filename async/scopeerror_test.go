package async_test

import (
	"context"
	"errors"
	"go/scanner"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestTheFirstErrorOfAScopeIsTheOneThatDecided(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 20_000 / raceFactor {
		var scope context.Context
		var cause error
		var gate sync.WaitGroup
		gate.Add(1)
		err := async.Scope(ctx, func(ctx context.Context) error {
			scope = ctx
			for range 2 {
				mine := errors.New("one of two")
				async.Go(ctx, func(context.Context) error { gate.Wait(); return mine })
			}
			async.OnExit(ctx, func(context.Context, error) error { cause = context.Cause(scope); return nil })
			gate.Done()
			return nil
		})
		if list := (*async.ScopeError)(nil); errors.As(err, &list) {
			require.Same(t, cause, list.Errors[0])
		}
	}
}

func TestTheCauseIsToldOnceThoughSiblingsFailAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for range 3 {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return io.EOF })
			}
			return errPlanted
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, []error{errPlanted, io.EOF}, list.Errors, "each error is listed once")
		require.NoError(t, list.Cause, "it is one of the errors")
	})
}

// TestAnErrorThatCannotBeComparedIsReportedOnce as the failure itself.
func TestAnErrorThatCannotBeComparedIsReportedOnce(t *testing.T) {
	list := scanner.ErrorList{&scanner.Error{Msg: "bad"}}
	for name, body := range map[string]func(ctx context.Context) error{
		"of a task": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return list })
			return nil
		},
		"of a body": func(context.Context) error { return list },
		"and echoed": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.IsType(t, list, async.Scope(asynctest.Context(t), body))
		})
	}
}

func TestPanicsBeyondTheListAreCountedOnce(t *testing.T) {
	err := panicOrError(func() error {
		return async.Scope(context.Background(), func(ctx context.Context) error {
			start := make(chan struct{})
			for i := range 100 {
				async.Go(ctx, func(context.Context) error { <-start; panic(i) })
			}
			close(start)
			return nil
		})
	})
	var p *async.PanicError
	require.ErrorAs(t, err, &p)
	require.Len(t, p.Also, 32)
	require.Contains(t, p.Error(), "and 67 more")
}
