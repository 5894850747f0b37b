package async_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
)

// A server may open a group for each connection. What is left of it is looked for in
// the heap, and in the scope that lasts.

// heapAfter returns how much more of the heap is in use after n calls of f.
func heapAfter(n int, f func()) int64 {
	var before, after runtime.MemStats
	for range 100 {
		f()
	}
	collect(&before)
	for range n {
		f()
	}
	collect(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// collect runs the collector until its cleanups have run, too.
func collect(m *runtime.MemStats) {
	for range 4 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	runtime.ReadMemStats(m)
}

func TestAScopeKeepsNothingOfGroupsThatHaveEndedOrWereForgotten(t *testing.T) {
	const n = 5_000
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
		"forgotten and watched": func(t *testing.T, ctx context.Context) {
			async.Open(context.WithValue(ctx, plantedKey{}, 1)).Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			long, cancel := context.WithCancel(asynctest.Context(t))
			defer cancel()
			require.NoError(t, async.Scope(long, func(ctx context.Context) error {
				for _, ctx := range []context.Context{ctx, long} {
					require.Less(t, heapAfter(n, func() { use(t, ctx) }), int64(n*100))
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
	for name, task := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errPlanted },
		"panic": func(context.Context) error { panic(errPlanted) },
	} {
		told := make(chan error, 2)
		require.NoError(t, async.Open(bridge.NewRoot(t.Context(), func(err error) { told <- err })).Go(task))
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
