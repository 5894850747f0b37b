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

// TestShutdownStopsEveryTaskBelowTheRoot whatever ctx it was started with, once
// its own ctx is done.
func TestShutdownStopsEveryTaskBelowTheRoot(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, task func(ctx context.Context) error){
		"detached": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", task)
		},
		"root task": func(ctx context.Context, task func(ctx context.Context) error) { async.Start(ctx, task) },
		"root task, WithoutCancel": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Start(context.WithoutCancel(ctx), task)
		},
		"below a root task, WithoutCancel": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(context.WithoutCancel(ctx), task)
				return nil
			})
		},
		"in a scope below a detached task": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				return async.Scope(context.WithoutCancel(ctx), func(ctx context.Context) error {
					async.Go(context.WithoutCancel(ctx), task)
					return nil
				})
			})
		},
		"started by one that was told to stop": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				<-ctx.Done()
				async.Go(context.WithoutCancel(ctx), task)
				return nil
			})
		},
		"straggler": func(ctx context.Context, task func(ctx context.Context) error) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(context.WithoutCancel(ctx), task)
				return errPlanted
			}, async.DetachAfter(0))
		},
		"in a scope of a bare goroutine": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "until then", func(ctx context.Context) error { <-ctx.Done(); return nil })
			go func() {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(context.WithoutCancel(ctx), task)
					return nil
				})
			}()
		},
		"queued": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(context.WithoutCancel(ctx), task)
					async.Go(context.WithoutCancel(ctx), task)
					return nil
				}, async.Limit(1))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, _ := asynctest.Root(context.Background())
				begin := time.Now()
				var cause error
				start(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				})
				synctest.Wait()
				patient, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				err := async.Shutdown(patient)
				require.NotErrorAs(t, err, new(*async.StragglerError))
				require.Equal(t, async.ErrShutdown, cause)
				require.Empty(t, asynctest.Live(ctx))
				require.Less(t, time.Since(begin), 1100*time.Millisecond)
			})
		})
	}
}

// TestShutdownLeavesTheCallerAlone, and what it is part of, wherever it is called.
func TestShutdownLeavesTheCallerAlone(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, shutdown func(ctx context.Context) error){
		"detached": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			async.Detach(ctx, "caller", shutdown)
		},
		"below a root task": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			async.Start(ctx, func(ctx context.Context) error { return async.Scope(ctx, shutdown) })
		},
		"scope": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			_ = async.Scope(ctx, shutdown)
		},
		"straggler": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					time.Sleep(time.Second)
					return async.Scope(context.WithoutCancel(ctx), shutdown)
				})
				return errPlanted
			}, async.DetachAfter(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(context.WithoutCancel(ctx))
				called := false
				call(ctx, func(ctx context.Context) error {
					hard, cancel := context.WithCancel(ctx)
					cancel()
					other := async.Start(asRoot(ctx), func(ctx context.Context) error { return nil })
					require.NoError(t, async.Shutdown(hard))
					_, err := other.Wait(ctx)
					require.NoError(t, err)
					require.NoError(t, ctx.Err())
					called = true
					return nil
				})
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, called)
			})
		})
	}
}

// asRoot returns ctx; what is started with it belongs to the caller.
func asRoot(ctx context.Context) context.Context { return ctx }

// TestShutdownAsksAHookForNoMoreThanItsTime, and protects Shield.
func TestShutdownDoesNotCutAShieldedStretchShort(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, _ = asynctest.Root(context.WithoutCancel(ctx))
		var shielded error
		async.Detach(ctx, "cleaner", func(ctx context.Context) error {
			<-ctx.Done()
			return async.Shield(ctx, time.Minute, func(ctx context.Context) error {
				time.Sleep(50 * time.Millisecond)
				shielded = ctx.Err()
				return errors.Join(ctx.Err())
			})
		})
		hard, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, async.Shutdown(hard))
		require.NoError(t, shielded)
	})
}
