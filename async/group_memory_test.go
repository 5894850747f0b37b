package async_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
)

// A server may make a group for each connection. What is left of it is looked for in
// the heap, and in the scope that lasts.

// keepsLess fails t if limit bytes more of the heap are in use after n calls of f than
// after as many before: tables of package context and of the runtime that have grown
// stay. Nobody knows when the cleanups of what was collected have run, so it looks again
// and again before it fails.
func keepsLess(t *testing.T, limit int64, n int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	for range n {
		f()
	}
	collect(&before)
	for range n {
		f()
	}
	more := limit
	for looks := 0; more >= limit && looks < 300; looks++ {
		collect(&after)
		more = int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	require.Less(t, more, limit)
}

// collect runs the collector, and lets its cleanups run.
func collect(m *runtime.MemStats) {
	for range 4 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	runtime.ReadMemStats(m)
}

func TestAScopeKeepsNothingOfGroupsThatHaveEnded(t *testing.T) {
	const n = 5_000
	for name, use := range map[string]func(t *testing.T, ctx context.Context){
		"stopped": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx, async.Name("g"), async.Limit(2))
			async.OnExit(g.Context(), func(context.Context, error) error { return nil })
			require.NoError(t, g.Go(nothing))
			require.NoError(t, g.Stop(ctx, nil))
		},
		"failed, and somebody was given that": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx)
			require.NoError(t, g.Go(func(context.Context) error { return errPlanted }))
			require.ErrorIs(t, g.Wait(ctx), errPlanted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			long, cancel := context.WithCancel(asynctest.Context(t))
			defer cancel()
			require.NoError(t, async.Scope(long, func(ctx context.Context) error {
				for _, ctx := range []context.Context{ctx, long} {
					keepsLess(t, n*100, n, func() { use(t, ctx) })
				}
				return nil
			}))
		})
	}
}

// TestAForgottenGroupWhoseEndMattersIsKept: its hook runs, and its failure is told, at
// the end of its owner.
func TestAForgottenGroupWhoseEndMattersIsKept(t *testing.T) {
	ran := false
	ended := make(chan struct{})
	require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.OnExit(async.NewGroup(ctx).Context(), func(context.Context, error) error { ran = true; return nil })
		_ = async.NewGroup(ctx).Go(func(context.Context) error { defer close(ended); return errPlanted })
		<-ended
		var m runtime.MemStats
		collect(&m)
		return nil
	}), errPlanted)
	require.True(t, ran)
}

// TestAForgottenGroupIsKeptForOutcomesOfPromises that nobody was given.
func TestAForgottenGroupIsKeptForOutcomesOfPromises(t *testing.T) {
	discarded := 0
	require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		_, rejected := async.NewPromise[int](async.NewGroup(ctx).Context())
		rejected.Reject(errPlanted)
		_, resolved := async.NewPromise[int](async.NewGroup(ctx).Context(), async.OnDiscard(func(int) { discarded++ }))
		resolved.Resolve(1)
		var m runtime.MemStats
		collect(&m)
		return nil
	}), errPlanted)
	require.Equal(t, 1, discarded)
}

// TestTheContextAloneKeepsAGroupOpen, though nobody holds the group.
func TestTheContextAloneKeepsAGroupOpen(t *testing.T) {
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		derived, cancel := context.WithCancel(async.NewGroup(ctx).Context())
		defer cancel()
		var m runtime.MemStats
		collect(&m)
		async.Go(derived, nothing)
		return nil
	}))
}

// TestAFailureOfAGroupAtARootIsTold once: 10 s after it, and not again when the group ends.
func TestAFailureOfAGroupAtARootIsTold(t *testing.T) {
	for name, use := range map[string]func(g *async.Group) error{
		"error": func(g *async.Group) error { return g.Go(func(context.Context) error { return errPlanted }) },
		"panic": func(g *async.Group) error { return g.Go(func(context.Context) error { panic(errPlanted) }) },
		"future": func(g *async.Group) error {
			async.Start(g.Context(), func(context.Context) error { return errPlanted })
			return nil
		},
		"promise": func(g *async.Group) error {
			_, p := async.NewPromise[int](g.Context())
			p.Reject(errPlanted)
			return nil
		},
	} {
		for when, end := range map[string]time.Duration{"before it ends": time.Minute, "when it ends": time.Second} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var told []error
					ctx := bridge.NewRoot(t.Context(), func(err error) { told = append(told, err) }, func(string) {})
					g := async.NewGroup(ctx)
					require.NoError(t, use(g))
					time.Sleep(end)
					synctest.Wait()
					if end == time.Minute {
						require.Len(t, told, 1)
					}
					require.NoError(t, async.Shutdown(ctx))
					require.Len(t, told, 1)
					require.ErrorIs(t, told[0], errPlanted)
					require.ErrorIs(t, g.Wait(ctx), errPlanted, "a waiter is told everything")
				})
			})
		}
	}
}

// TestAFailureOfAGroupAtARootIsTheWaiters, if somebody waits.
func TestAFailureOfAGroupAtARootIsTheWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := bridge.NewRoot(t.Context(), func(err error) { t.Errorf("told to the root: %v", err) }, func(string) {})
		for range 100 {
			g := async.NewGroup(ctx)
			require.NoError(t, g.Go(func(context.Context) error { return errPlanted }))
			require.NoError(t, g.Go(sleeps(time.Minute)))
			require.ErrorIs(t, g.Wait(ctx), errPlanted)
			g = async.NewGroup(ctx)
			require.NoError(t, g.Go(func(context.Context) error { return errPlanted }))
			synctest.Wait()
			require.ErrorIs(t, g.Stop(ctx, nil), errPlanted)
		}
		require.NoError(t, async.Shutdown(ctx))
	})
}
