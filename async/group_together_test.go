package async_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// Calls that come at once, on real goroutines.

// TestEverythingAtOnceHasOneOutcome: Stop, Wait, Cancel and Go from outside, from
// tasks and from an exit hook.
func TestEverythingAtOnceHasOneOutcome(t *testing.T) {
	for i := range 200 {
		g := async.NewGroup(t.Context(), async.Limit(1+i%3))
		var ran atomic.Int32
		task := func(context.Context) error { ran.Add(1); return nil }
		async.OnExit(g.Context(), func(ctx context.Context, _ error) error {
			_ = g.Go(task)
			g.Cancel(errStop)
			if err := g.Stop(ctx, nil); err == nil {
				t.Error("an exit hook is part of the group")
			}
			return nil
		})
		var all sync.WaitGroup
		outcomes := make(chan string, 100)
		for j := range 8 {
			all.Go(func() {
				for range 5 {
					_ = g.Go(task)
				}
			})
			all.Go(func() {
				switch j % 4 {
				case 0:
					outcomes <- fmt.Sprint(g.Stop(t.Context(), errStop))
				case 1:
					outcomes <- fmt.Sprint(g.Wait(t.Context()))
				case 2:
					g.Cancel(errStop)
				case 3:
					_ = g.Go(func(ctx context.Context) error { _ = g.Stop(ctx, errStop); return nil })
				}
			})
		}
		all.Wait()
		before := ran.Load()
		outcome := fmt.Sprint(g.Wait(t.Context()))
		close(outcomes)
		for o := range outcomes {
			require.Equal(t, outcome, o)
		}
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		require.Equal(t, before, ran.Load())
	}
}

// TestACancelThatEndsAGroupAtOnceIsNoNewsToItsOwner: the group may have ended before
// Cancel has returned, and nobody waits for it.
func TestACancelThatEndsAGroupAtOnceIsNoNewsToItsOwner(t *testing.T) {
	for range 500 {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			g := async.NewGroup(ctx)
			require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
			_ = g.Wait(done(ctx)) // it ends when its task does
			g.Cancel(errStop)
			return nil
		}))
	}
}

// TestOfCancelsAtOnceOneWasFirst, also if all have the same cause.
func TestOfCancelsAtOnceOneWasFirst(t *testing.T) {
	for i := range 1000 {
		cancels := map[string]func(error) bool{}
		g := async.NewGroup(t.Context())
		started := make(chan context.Context, 1)
		f := async.Start(t.Context(), func(ctx context.Context) error { started <- ctx; <-ctx.Done(); return nil })
		if i%2 == 0 { // package context decides
			g.Context().Done()
			(<-started).Done()
		}
		cancels["group"], cancels["future"] = g.Cancel, f.Cancel
		for name, cancel := range cancels {
			var first atomic.Int32
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if cancel(errStop) {
						first.Add(1)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, first.Load(), name)
		}
		_, _ = f.Join(t.Context())
		require.NoError(t, g.Wait(t.Context()))
	}
}
