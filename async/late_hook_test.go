package async_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// endedContext returns the context of a scope that has ended, with a value.
func endedContext(t *testing.T, ctx context.Context, opts ...async.ScopeOption) (ended context.Context) {
	require.NoError(t, async.Scope(context.WithValue(ctx, contextKey{}, "value"), func(ctx context.Context) error {
		ended = ctx
		return nil
	}, opts...))
	return ended
}

// TestALateExitHookMayDoWhateverAnExitHookMay: it has a live context, and what
// it starts is joined before OnExit returns.
func TestALateExitHookMayDoWhateverAnExitHookMay(t *testing.T) {
	work := func(did *bool) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			if err := async.Sleep(ctx, time.Second); err != nil {
				return err
			}
			*did = ctx.Value(contextKey{}) == "value"
			return nil
		}
	}
	for name, hook := range map[string]func(ctx context.Context, work func(ctx context.Context) error) error{
		"itself": func(ctx context.Context, work func(ctx context.Context) error) error { return work(ctx) },
		"Scope": func(ctx context.Context, work func(ctx context.Context) error) error {
			return async.Scope(ctx, work)
		},
		"Shield": func(ctx context.Context, work func(ctx context.Context) error) error {
			return async.Shield(ctx, time.Minute, work)
		},
		"Go": func(ctx context.Context, work func(ctx context.Context) error) error {
			async.Go(ctx, work)
			return nil
		},
		"Execute": func(ctx context.Context, work func(ctx context.Context) error) error {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) { return 0, work(ctx) }).Await(ctx, 2*time.Second)
			return err
		},
		"Start, not awaited": func(ctx context.Context, work func(ctx context.Context) error) error {
			async.Start(ctx, work)
			return nil
		},
		"ForEach": func(ctx context.Context, work func(ctx context.Context) error) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2}), func(ctx context.Context, i int) error {
				if i == 1 {
					return nil
				}
				return work(ctx)
			})
		},
		"OnExit": func(ctx context.Context, work func(ctx context.Context) error) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return work(ctx) })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				ended := endedContext(t, ctx)
				cancel()
				begin := time.Now()
				did := false
				async.OnExit(ended, func(ctx context.Context, outcome error) error {
					require.Equal(t, async.ErrScopeEnded, outcome)
					require.NoError(t, ctx.Err())
					return hook(ctx, work(&did))
				})
				require.True(t, did)
				require.Equal(t, time.Second, time.Since(begin))
				require.Empty(t, asynctest.Live(ctx))
			})
		})
	}
}

func TestWhatALateExitHookComesTo(t *testing.T) {
	run := func(t *testing.T, ctx context.Context, f func(ctx context.Context) error) error {
		ctx, check := asynctest.Root(context.WithoutCancel(ctx))
		async.OnExit(endedContext(t, ctx), func(ctx context.Context, _ error) error { return f(ctx) })
		return check()
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, run(t, ctx, nothing))
		require.ErrorIs(t, run(t, ctx, func(context.Context) error { return errPlanted }), errPlanted, "its error goes to the root")
		require.ErrorIs(t, run(t, ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errPlanted })
			return nil
		}), errPlanted)
		func() {
			defer func() { require.Contains(t, describe(recover()), "planted") }()
			_ = run(t, ctx, func(context.Context) error { panic(errPlanted) })
			t.Error("its panic goes to the caller")
		}()
		gone := true
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = run(t, ctx, func(context.Context) error { runtime.Goexit(); return nil })
			gone = false
		}()
		<-done
		require.True(t, gone, "Goexit takes the caller's goroutine")
	})
}

func describe(value any) string {
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return errors.New("no error").Error()
}

// TestALateExitHookIsStoppedOnTime.
func TestALateExitHookIsStoppedOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(context.WithoutCancel(ctx))
		ended := endedContext(t, ctx, async.HookTimeout(time.Minute))
		begin := time.Now()
		async.OnExit(ended, func(ctx context.Context, _ error) error { <-ctx.Done(); return context.Cause(ctx) })
		require.Equal(t, time.Minute, time.Since(begin))
		var limit *async.TimeoutError
		require.ErrorAs(t, check(), &limit)
		require.Equal(t, time.Minute, limit.Limit)
	})
}
