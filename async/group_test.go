package async_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

var errStop = errors.New("told to stop")

func mustNotRun(t *testing.T) func(context.Context) error {
	return func(context.Context) error { t.Error("a task that was refused has run"); return nil }
}

func TestGroupRunsWhatIsStartedInItUntilItIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		var ran, told atomic.Int32
		for range 3 {
			require.NoError(t, g.Go(func(ctx context.Context) error {
				ran.Add(1)
				<-ctx.Done()
				require.Equal(t, errStop, context.Cause(ctx))
				told.Add(1)
				return nil
			}))
		}
		synctest.Wait()
		require.EqualValues(t, 3, ran.Load())
		require.NoError(t, g.Stop(ctx, errStop), "nothing was lost")
		require.EqualValues(t, 3, told.Load(), "Stop has joined them")
		require.Equal(t, errStop, context.Cause(g.Context()))
	})
}

func TestStopBeforeAnyGoEndsAGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		require.NoError(t, g.Stop(ctx, errStop))
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		require.NoError(t, g.Stop(ctx, nil), "any number of times")
		require.NoError(t, g.Wait(ctx))
		require.False(t, g.Cancel(errStop))
	})
}

func TestStopTwiceAtOnceHasOneOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return errPlanted }))
		synctest.Wait()
		outcomes := make([]error, 100)
		var all sync.WaitGroup
		for i := range outcomes {
			all.Go(func() {
				if i%2 == 0 {
					outcomes[i] = g.Stop(ctx, errStop)
				} else {
					outcomes[i] = g.Wait(ctx)
				}
			})
		}
		all.Wait()
		for _, err := range outcomes {
			require.Equal(t, outcomes[0], err)
		}
		require.ErrorIs(t, outcomes[0], errPlanted)
		require.ErrorIs(t, outcomes[0], errStop)
	})
}

func TestStopAndWaitInsideAreAnAwaitCycle(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx, async.Name("the group"))
		require.NoError(t, g.Go(func(ctx context.Context) error {
			require.ErrorIs(t, g.Wait(ctx), async.ErrAwaitCycle)
			require.NoError(t, ctx.Err(), "Wait cancels nothing")
			require.NoError(t, g.Go(nothing), "and does not end it")
			err := async.Scope(ctx, func(ctx context.Context) error {
				deep, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				return g.Stop(deep, errStop)
			})
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			require.ErrorContains(t, err, "the group")
			require.Equal(t, errStop, context.Cause(ctx), "after the cancel")
			return nil
		}))
		synctest.Wait()
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded, "it has ended by itself")
		require.NoError(t, g.Wait(ctx))
		require.NoError(t, g.Stop(g.Context(), nil), "nobody has to wait")
	})
}

func TestGoRacingStopRunsAndIsJoinedOrIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for round := range 50 {
			g := async.NewGroup(ctx)
			var running, stopped atomic.Int32
			var callers sync.WaitGroup
			start := make(chan struct{})
			for i := range 800 {
				callers.Go(func() {
					<-start
					if i%100 == round {
						require.NoError(t, g.Stop(ctx, errStop))
						require.Zero(t, running.Load(), "nothing runs after it")
						stopped.Store(1)
						return
					}
					err := g.Go(func(context.Context) error {
						require.Zero(t, stopped.Load())
						running.Add(1)
						defer running.Add(-1)
						return nil
					})
					if err != nil {
						require.ErrorIs(t, err, async.ErrScopeEnded)
					}
				})
			}
			close(start)
			callers.Wait()
			require.NoError(t, g.Stop(ctx, nil))
			require.Zero(t, running.Load())
		}
	})
}

func TestGoAfterTheEndOfAGroupIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var g *async.Group
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			g = async.NewGroup(ctx, async.Name("conns"))
			require.NoError(t, g.Go(nothing))
			return nil
		}))
		err := g.Go(mustNotRun(t))
		require.ErrorIs(t, err, async.ErrScopeEnded, "it ends with its owner")
		require.ErrorContains(t, err, "conns")
		require.NoError(t, g.Stop(ctx, errStop))
		require.Equal(t, async.ErrDismissed, context.Cause(g.Context()))
	})
}

func TestWaitOnAnEmptyGroupEndsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		require.NoError(t, g.Wait(ctx))
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
	})
}

func TestEmptyIsNotEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		for range 3 {
			require.NoError(t, g.Go(nothing))
			synctest.Wait()
		}
		require.NoError(t, g.Context().Err())
		require.NoError(t, g.Stop(ctx, nil))
	})
}

func TestNewGroupOnAnEndedScopeReturnsAClosedGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var kept context.Context
		type key struct{}
		require.NoError(t, async.Scope(context.WithValue(ctx, key{}, 1), func(ctx context.Context) error { kept = ctx; return nil }))
		g := async.NewGroup(kept)
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		require.Equal(t, 1, g.Context().Value(key{}))
		require.Equal(t, async.ErrScopeEnded, context.Cause(g.Context()))
		require.False(t, g.Cancel(errStop))
		require.NoError(t, g.Stop(ctx, errStop))
		require.NoError(t, g.Wait(ctx))
		require.Panics(t, func() { async.Go(g.Context(), nothing) })
	})
}

// TestAGroupDoesNotWaitForPromises, but settles those that nobody has resolved.
func TestAGroupDoesNotWaitForPromises(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		for range 3 {
			_, p := async.NewPromise[int](g.Context())
			p.Resolve(1)
		}
		f, _ := async.NewPromise[int](g.Context())
		require.NoError(t, g.Go(nothing))
		synctest.Wait()
		require.NoError(t, g.Wait(ctx))
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, async.ErrAbandoned)
	})
}
