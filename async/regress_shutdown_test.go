package async_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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

// TestAnAbortHookThatOverrunsIsNamed while its handler runs as well.
func TestAnAbortHookThatOverrunsIsNamed(t *testing.T) {
	for name, handler := range map[string]func(ctx context.Context) error{
		"alone":              func(ctx context.Context) error { <-ctx.Done(); return nil },
		"beside its handler": func(context.Context) error { time.Sleep(time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, handler, async.Name("victim"), async.HookTimeout(time.Second),
						async.OnAbort(func(context.Context, error) error { time.Sleep(time.Hour); return nil }))
					return errPlanted
				}, async.DetachAfter(3*time.Second))
				require.ErrorContains(t, err, "abort hook of victim")
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

func TestWhatDetachAfterHasToldIsNotReportedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(3 * time.Second); return io.EOF })
			return errPlanted
		}, async.DetachAfter(time.Second))
		err := check()
		require.ErrorIs(t, err, io.EOF)
		require.NotContains(t, err.Error(), errPlanted.Error())
	})
}

// slowIs is an error that takes a while to be compared, so that a task can come
// home while its scope sums up.
type slowIs struct{ on *atomic.Bool }

func (slowIs) Error() string { return "slow" }
func (e slowIs) Is(error) bool {
	if e.on.Load() {
		time.Sleep(time.Second)
	}
	return false
}

func TestNothingIsReportedTwiceWhenTheLastComesHomeAsDetachAfterPasses(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		on := new(atomic.Bool)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(1500 * time.Millisecond); on.Store(false); return nil })
			async.OnExit(ctx, func(context.Context, error) error { return nil })
			time.AfterFunc(900*time.Millisecond, func() { on.Store(true) })
			return slowIs{on}
		}, async.DetachAfter(time.Second))
		on.Store(false)
		require.ErrorAs(t, err, new(slowIs))
		require.NoError(t, check())
	})
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

func TestARejectionThatMentionsErrAbandonedFailsTheScope(t *testing.T) {
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		_, p := async.NewPromise[int](ctx)
		p.Reject(fmt.Errorf("upstream: %w", async.ErrAbandoned))
		return nil
	})
	require.ErrorIs(t, err, async.ErrAbandoned)
}

// TestAPromiseResolvedJustAsItsWaitExpiresIsGivenOrDiscarded has the two run
// with all sorts of small delays.
func TestAPromiseResolvedJustAsItsWaitExpiresIsGivenOrDiscarded(t *testing.T) {
	ctx := asynctest.Context(t)
	for i := range 20_000 / raceFactor {
		var discarded atomic.Int32
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(func(int) { discarded.Add(1) }), async.OnAbort(contextHook))
			var bare sync.WaitGroup
			var ready atomic.Bool
			spin := func(n int) {
				for range n {
					ready.Load()
				}
			}
			bare.Go(func() {
				for !ready.Load() {
				}
				spin(i % 50)
				p.Resolve(1)
			})
			ready.Store(true)
			spin(i % 71)
			_, err := f.Await(ctx, -1)
			bare.Wait()
			if err != nil {
				require.EqualValues(t, 1, discarded.Load())
			} else {
				require.Zero(t, discarded.Load())
			}
			return nil
		}))
	}
}
