package async_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/ambit-go/ambit/scheduler"
)

// A server may open a group for each connection. What is left of it is looked for in
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

func TestAScopeKeepsNothingOfGroupsThatHaveEndedOrWereForgotten(t *testing.T) {
	const n = 5_000
	workers := scheduler.New(scheduler.Goroutines())
	for name, use := range map[string]func(t *testing.T, ctx context.Context){
		"stopped": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx, async.Name("g"), async.Limit(2))
			async.OnExit(g.Context(), func(context.Context, error) error { return nil })
			require.NoError(t, g.Go(nothing))
			require.NoError(t, g.Stop(ctx, nil))
		},
		"failed, and somebody was given that": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx)
			require.NoError(t, g.Go(func(context.Context) error { return errPlanted }))
			require.ErrorIs(t, g.Wait(ctx), errPlanted)
		},
		"forgotten": func(t *testing.T, ctx context.Context) {
			f := make(chan struct{})
			require.NoError(t, async.Open(ctx).Go(func(context.Context) error { close(f); return nil }))
			<-f
		},
		"forgotten by its leader": func(t *testing.T, ctx context.Context) {
			ended := make(chan struct{})
			g := async.Open(ctx)
			require.NoError(t, g.Go(func(ctx context.Context) error { defer close(ended); <-ctx.Done(); return ctx.Err() }))
			require.NoError(t, g.Go(nothing, async.Leader()))
			<-ended
		},
		"cancelled and forgotten": func(t *testing.T, ctx context.Context) {
			ended := make(chan struct{})
			g := async.Open(ctx)
			require.NoError(t, g.Go(func(ctx context.Context) error { defer close(ended); <-ctx.Done(); return ctx.Err() }))
			g.Cancel(errPlanted)
			<-ended
		},
		"forgotten when somebody was given what had failed": func(t *testing.T, ctx context.Context) {
			f := async.Start(async.Open(ctx).Context(), func(context.Context) error { return errPlanted })
			_, err := f.Join(ctx)
			require.ErrorIs(t, err, errPlanted)
		},
		"forgotten when somebody was given what had failed before": func(t *testing.T, ctx context.Context) {
			f, p := async.NewPromise[int](async.Open(ctx).Context())
			p.Reject(errPlanted)
			_, err := f.Join(ctx)
			require.ErrorIs(t, err, errPlanted)
		},
		"forgotten when a worker in it was closed": func(t *testing.T, ctx context.Context) {
			w := workers.NewWorker(async.Open(ctx).Context())
			require.NoError(t, w.Close())
			require.NoError(t, w.Wait(ctx))
		},
		"forgotten, with a time limit": func(t *testing.T, ctx context.Context) {
			f := make(chan struct{})
			require.NoError(t, async.Open(ctx, async.Timeout(time.Hour)).Go(func(context.Context) error { close(f); return nil }))
			<-f
		},
		"forgotten and watched": func(t *testing.T, ctx context.Context) {
			async.Open(context.WithValue(ctx, plantedKey{}, 1)).Context().Done()
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

type plantedKey struct{}

// TestAForgottenGroupWhoseEndMattersIsKept: its hook runs, and its failure is told, at
// the end of its owner.
func TestAForgottenGroupWhoseEndMattersIsKept(t *testing.T) {
	ran := false
	ended := make(chan struct{})
	require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.OnExit(async.Open(ctx).Context(), func(context.Context, error) error { ran = true; return nil })
		_ = async.Open(ctx).Go(func(context.Context) error { defer close(ended); return errPlanted })
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
		_, rejected := async.NewPromise[int](async.Open(ctx).Context())
		rejected.Reject(errPlanted)
		_, resolved := async.NewPromise[int](async.Open(ctx).Context(), async.OnDiscard(func(int) { discarded++ }))
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
		derived, cancel := context.WithCancel(async.Open(ctx).Context())
		defer cancel()
		var m runtime.MemStats
		collect(&m)
		async.Go(derived, nothing)
		return nil
	}))
}

// TestAFailureOfAForgottenGroupAtARootIsTold to the root, when the group is collected.
func TestAFailureOfAForgottenGroupAtARootIsTold(t *testing.T) {
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
		told := make(chan error, 2)
		require.NoError(t, use(async.Open(bridge.NewRoot(t.Context(), func(err error) { told <- err }))))
		for collected := false; !collected; {
			runtime.GC()
			select {
			case err := <-told:
				require.ErrorIs(t, err, errPlanted, name)
				collected = true
			case <-time.After(time.Millisecond):
			}
		}
		require.Empty(t, told, "once, though a panic is told after 10 s and not when the group is collected")
	}
}

// TestAForgottenGroupOfABubbleIsCollectedOutside: the cleanups of the collector run
// outside of every bubble, where to close a channel of one ends the process.
func TestAForgottenGroupOfABubbleIsCollectedOutside(t *testing.T) {
	var group weak.Pointer[async.Group]
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := asynctest.Root(t.Context())
		stop := make(chan struct{})
		func() {
			g := async.Open(ctx, async.StopOn(stop, nil), async.Timeout(time.Hour))
			_ = g.Context().Done()
			group = weak.Make(g)
		}()
		close(stop)
	})
	var m runtime.MemStats
	for group.Value() != nil {
		collect(&m)
	}
	collect(&m) // for its cleanup
}
