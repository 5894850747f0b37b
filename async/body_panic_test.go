package async_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// recovered returns the value that f panics with, nil if it does not.
func recovered(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// throughScopes calls body in so many scopes, one in the other.
func throughScopes(ctx context.Context, depth int, body func(ctx context.Context)) {
	if depth == 0 {
		body(ctx)
		return
	}
	_ = async.Scope(ctx, func(ctx context.Context) error {
		throughScopes(ctx, depth-1, body)
		return nil
	})
}

func TestABodysPanicGoesOnAsItWas(t *testing.T) {
	type own struct{ n int }
	for name, value := range map[string]any{
		"a sentinel":    http.ErrAbortHandler,
		"a string":      "words",
		"a struct":      own{7},
		"uncomparable":  []int{1, 2},
		"a typed nil":   (*own)(nil),
		"a runtime one": errors.New("as if by the runtime"),
	} {
		for _, depth := range []int{1, 2, 10} {
			got := recovered(func() {
				throughScopes(asynctest.Context(t), depth, func(context.Context) { panic(value) })
			})
			require.Equal(t, value, got, "%s through %d scopes", name, depth)
		}
	}
	var e runtime.Error
	got := recovered(func() {
		throughScopes(asynctest.Context(t), 3, func(context.Context) { _ = []int{}[len(name(t))] })
	})
	require.ErrorAs(t, got.(error), &e)
}

func name(t *testing.T) string { return t.Name() }

// TestABodysPanicKeepsTheFramesItCameFrom: a deferred call above the scopes sees
// them in the stack, as it would without the scopes.
func TestABodysPanicKeepsTheFramesItCameFrom(t *testing.T) {
	var stack string
	recovered(func() {
		defer func() { stack = string(debug.Stack()) }()
		throughScopes(asynctest.Context(t), 3, func(context.Context) { plantedPanic() })
	})
	require.Contains(t, stack, "plantedPanic")
}

// TestABodysPanicIsJoinedFirst: everything has ended, with the panic as its
// cause, before it goes on.
func TestABodysPanicIsJoinedFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var cause error
		hooked := false
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(_ context.Context, outcome error) error {
					hooked = true
					require.ErrorIs(t, outcome, errPlanted)
					return nil
				})
				async.Go(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					cause = context.Cause(ctx)
					return nil
				})
				plantedPanic()
				return nil
			})
		})
		require.Equal(t, errPlanted, value)
		var p *async.PanicError
		require.ErrorAs(t, cause, &p)
		require.Contains(t, string(p.Stack), "plantedPanic")
		require.True(t, hooked)
	})
}

// TestWhatFailedBesideABodysPanicIsTold by the root, as the value has no place
// for it; a PanicError of ours has.
func TestWhatFailedBesideABodysPanicIsTold(t *testing.T) {
	beside := errors.New("beside it")
	program := func(ctx context.Context, value any) any {
		return recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return beside })
				panic(value)
			})
		})
	}
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx, check := asynctest.Root(t.Context())
		require.Equal(t, "words", program(ctx, "words"))
		require.ErrorIs(t, check(), beside)

		ctx, check = asynctest.Root(t.Context())
		_, err := async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Await(ctx, 0)
		got := program(ctx, err)
		require.Same(t, err, got, "it goes on as it was")
		require.NotErrorIs(t, everythingIn(got.(error)), beside)
		require.ErrorIs(t, check(), beside)
	})
}

// TestTheFirstPanicIsRaised, also if the body panics because of it.
func TestTheFirstPanicIsRaised(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				<-ctx.Done()
				panic("because of it")
			})
		})
		p, ok := value.(*async.PanicError)
		require.True(t, ok, "%T", value)
		require.Equal(t, errPlanted, p.Value)
		require.Contains(t, p.Error(), "because of it")
		require.Equal(t, 1, strings.Count(p.Error(), errPlanted.Error()+"\n"))
	})
}

// TestPanicsThatNameEachOtherHaveATextWithAnEnd: a task whose child has
// panicked first panics as well, and both are told in the scope around.
func TestPanicsThatNameEachOtherHaveATextWithAnEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { panic(errors.New("child")) })
					<-ctx.Done()
					panic(errors.New("parent"))
				})
				return nil
			})
		})
		text := value.(error).Error()
		require.Contains(t, text, "child")
		require.Contains(t, text, "parent")
	})
}

func TestAPanicThatTheScopeGaveUpOnIsToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx, check := asynctest.Root(t.Context())
		release := make(chan struct{})
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { <-release; return errors.New("late") })
					plantedPanic()
					return nil
				})
				return nil
			}, async.DetachAfter(time.Second))
		})
		require.ErrorIs(t, value.(error), errPlanted)
		require.ErrorAs(t, everythingIn(value.(error)), new(*async.StragglerError))
		close(release)
		err := check()
		require.ErrorContains(t, err, "late") // which is the root's
		require.NotErrorIs(t, everythingIn(err), errPlanted)
	})
}
