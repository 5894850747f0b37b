package async_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAnAbortedRootTaskIsAStragglerUntilItEndsAndShutdownReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		f := async.Execute(ctx, stubborn(time.Minute, 1, nil), async.Name("stubborn"))
		require.Equal(t, []string{"stubborn"}, asynctest.Live(ctx))
		_, err := f.Await(ctx, time.Second)
		require.Error(t, err)
		require.Equal(t, async.StateAborting, f.State())
		require.Equal(t, []string{"stubborn"}, asynctest.Live(ctx), "still there, so still seen")

		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = async.Shutdown(brief)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.Contains(t, left.Left[0].Stack, "time.Sleep", "with the stack of its goroutine")
		require.ErrorContains(t, err, "stubborn")

		<-f.Done()
		synctest.Wait()
		require.Empty(t, asynctest.Live(ctx))
		require.NoError(t, async.Shutdown(ctx))
	})
}

func TestShutdownDoesNotWaitForEverForAHook(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, _ = asynctest.Root(ctx)
		async.Detach(ctx, "hooked", func(ctx context.Context) error { <-ctx.Done(); return nil },
			async.HookTimeout(time.Second),
			async.OnAbort(func(context.Context, error) error { time.Sleep(24 * time.Hour); return nil }))
		patient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorContains(t, async.Shutdown(patient), "hook of hooked")
		require.Less(t, time.Since(start), time.Minute)
		require.NoError(t, async.Shutdown(context.WithoutCancel(ctx)), "told once, and now it waits for the hook to end")
	})
}

// TestShutdownWaitsForAbortHooksWherever the task stands: of a straggler that
// was let go, and below a detached task.
func TestShutdownWaitsForAbortHooksWherever(t *testing.T) {
	hook := func(ended *bool) async.TaskOption {
		return async.OnAbort(func(context.Context, error) error { time.Sleep(4 * time.Second); *ended = true; return nil })
	}
	for name, start := range map[string]func(ctx context.Context, ended *bool){
		"of a straggler": func(ctx context.Context, ended *bool) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(4 * time.Second); return nil }, hook(ended))
				return errPlanted
			}, async.DetachAfter(time.Second))
		},
		"below a detached task": func(ctx context.Context, ended *bool) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, hook(ended))
					return nil
				})
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(ctx)
				ended := false
				start(ctx, &ended)
				patient, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.NoError(t, async.Shutdown(patient))
				require.True(t, ended)
			})
		})
	}
}
