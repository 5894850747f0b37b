package async_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestExitHooksRunOneAtATimeThoughDetachAfterHasPassed, and each sees the
// outcome.
func TestExitHooksRunOneAtATimeThoughDetachAfterHasPassed(t *testing.T) {
	for name, left := range map[string]time.Duration{"none": 0, "a straggler": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(ctx)
				var c runCount
				require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
					for range 3 {
						async.OnExit(ctx, func(_ context.Context, outcome error) error {
							require.ErrorIs(t, outcome, errPlanted)
							c.enter()
							defer c.out()
							time.Sleep(2 * time.Second)
							return nil
						})
					}
					async.Go(ctx, func(context.Context) error { time.Sleep(left); return nil })
					return errPlanted
				}, async.DetachAfter(time.Second)), errPlanted)
				require.NoError(t, async.Shutdown(ctx))
				require.EqualValues(t, 1, c.most.Load())
				require.EqualValues(t, 3, c.entered.Load())
			})
		})
	}
}

func TestAnExitHookDoesNotHoldUpItsTaskUnderALimit(t *testing.T) {
	for name, hooks := range map[string]int{"none": 0, "one": 1} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				start := time.Now()
				f := async.Execute(ctx, func(ctx context.Context) (int, error) {
					for range hooks {
						async.OnExit(ctx, func(context.Context, error) error { return nil })
					}
					return 1, nil
				})
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				_, err := f.Wait(ctx)
				tookAbout(t, 0, start)
				return err
			})
		})
	}
}

func TestALateExitHookHasTheHookTimeoutOfItsScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var kept context.Context
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { kept = ctx; return nil }, async.HookTimeout(time.Minute)))
		ran := false
		async.OnExit(kept, func(ctx context.Context, _ error) error {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Minute, time.Until(deadline))
			ran = true
			return nil
		})
		require.True(t, ran)
	})
}

func TestAnExitHookOnAnEndedScopeRunsAtOnceOnTheCallersGoroutine(t *testing.T) {
	withStoredContexts(t, func(t *testing.T, _, ctx context.Context) {
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
			exits := 0 // not atomic: it is counted on this goroutine
			async.OnExit(ctx, func(ctx context.Context, outcome error) error {
				exits++
				require.Equal(t, async.ErrScopeEnded, outcome)
				require.NoError(t, ctx.Err())
				_, ok := ctx.Deadline()
				require.True(t, ok)
				return nil
			})
			require.Equal(t, 1, exits)
		}
	})
}

func TestAHooksErrorInACancelledScopeMatchesItsErrAndCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	cancel(errPlanted)
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error { return io.EOF })
		return nil
	})
	for _, want := range []error{io.EOF, context.Canceled, errPlanted} {
		require.ErrorIs(t, err, want)
	}
}
