package async_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var errHookBoom = errors.New("boom")

// inBubble runs f in a synctest bubble with a root of its own.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, asynctest.Context(t)) })
}

func TestExitHooksRunLastInFirstOutAfterAllTasksEvenIfOneFails(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []int
		taskEnded := false
		err := async.Scope(ctx, func(ctx context.Context) error {
			hook := func(i int, end func() error) {
				async.OnExit(ctx, func(ctx context.Context, outcome error) error {
					require.True(t, taskEnded)
					require.NoError(t, ctx.Err(), "hooks are shielded")
					require.ErrorIs(t, outcome, errHookBoom)
					order = append(order, i)
					return end()
				})
			}
			hook(1, func() error { return nil })
			hook(2, func() error { return errors.New("hook failed") })
			hook(3, func() error { panic("hook panicked") })
			hook(4, func() error { runtime.Goexit(); return nil })
			async.Go(ctx, func(ctx context.Context) error {
				time.Sleep(time.Minute)
				taskEnded = true
				return nil
			})
			return errHookBoom
		})
		require.Equal(t, []int{4, 3, 2, 1}, order)
		var all *async.ScopeError
		require.ErrorAs(t, err, &all)
		require.Equal(t, errHookBoom, all.Errors[0], "hooks come after and never replace")
		require.ErrorContains(t, err, "hook failed")
		require.ErrorIs(t, err, async.ErrGoexit)
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "hook panicked", p.Value)
	})
}

func TestAHookHasADeadlineOfItsOwnAndJoinsWhatItStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []async.ScopeOption
		want time.Duration
	}{
		"by default":       {nil, 5 * time.Second},
		"with HookTimeout": {[]async.ScopeOption{async.HookTimeout(time.Second)}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var lasted time.Duration
				started := false
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(ctx context.Context, _ error) error {
						async.Go(ctx, func(ctx context.Context) error {
							begin := time.Now()
							<-ctx.Done()
							lasted, started = time.Since(begin), true
							return nil
						})
						return nil
					})
					return nil
				}, tc.opts...))
				require.True(t, started)
				require.Equal(t, tc.want, lasted)
			})
		})
	}
}

func TestAnAbortHookRunsOnceBesideTheHandlerAndItsErrorIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		type key struct{}
		calls := 0
		var cause error
		kill := make(chan struct{})
		own := errors.New("handler was killed")
		err := async.Scope(ctx, func(ctx context.Context) error {
			f := async.Execute(context.WithValue(ctx, key{}, "v"), func(ctx context.Context) (int, error) {
				<-kill // looks at no context
				return 0, own
			}, async.OnAbort(func(ctx context.Context, c error) error {
				calls++
				cause = c
				require.Equal(t, "v", ctx.Value(key{}))
				require.NoError(t, ctx.Err())
				close(kill)
				return errors.New("hook failed")
			}), async.Grace(time.Hour))
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, own)
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "hook failed")
			f.Cancel(nil)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, calls)
		var limit *async.TimeoutError
		require.ErrorAs(t, cause, &limit)
	})
}

func TestNoAbortHookForAHandlerThatHasReturnedOrItsOwnError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			hook := async.OnAbort(func(context.Context, error) error { t.Error("the hook was called"); return nil })
			f := async.Execute(ctx, func(ctx context.Context) (int, error) {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
				return 1, nil // what it started goes on
			}, hook)
			synctest.Wait()
			f.Cancel(nil)
			async.Execute(ctx, func(ctx context.Context) (int, error) { return 0, errHookBoom }, hook)
			return nil
		})
		require.ErrorIs(t, err, errHookBoom)
	})
}

func TestShieldOutlastsTheCancellationAndEndsOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			cancel()
			begin := time.Now()
			err := async.Shield(ctx, time.Second, func(ctx context.Context) error {
				require.NoError(t, ctx.Err())
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
				return nil
			})
			require.Equal(t, time.Second, time.Since(begin), "what it starts ends with it")
			return err
		}))
	})
}

// Failures and errors of hooks are one list.
func TestAHookThatReturnsTheFailureOfItsScopeIsNotListedBesideIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.Equal(t, errHookBoom, async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(_ context.Context, outcome error) error { return outcome })
			return errHookBoom
		}))
	})
}
