package async_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/require"
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

func TestStopWhoseCtxEndsNamesWhoIsLeftAndALaterOneJoins(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx, async.Name("conns"))
		require.NoError(t, g.Go(func(context.Context) error { waitHere(); time.Sleep(time.Minute); return nil }, async.Name("stubborn")))
		errHurry := errors.New("no time left")
		short, cancel := context.WithTimeoutCause(ctx, time.Second, errHurry)
		defer cancel()
		start := time.Now()
		err := g.Stop(short, errStop)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, errHurry, "the cause of its ctx")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.NotEmpty(t, left.Left[0].Stack)
		require.ErrorIs(t, left.Cause, errStop)
		require.NoError(t, g.Go(nothing), "it has not ended")

		require.NoError(t, g.Stop(ctx, nil), "a later one joins")
		require.GreaterOrEqual(t, time.Since(start), time.Minute)
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		require.NoError(t, g.Stop(short, nil), "what has ended wins over a ctx that is done")
	})
}

func TestAGroupWhoseStopWasCutShortEndsByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		var ended atomic.Bool
		async.OnExit(g.Context(), func(context.Context, error) error { ended.Store(true); return nil })
		require.NoError(t, g.Go(func(context.Context) error { time.Sleep(time.Minute); return nil }))
		done, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, g.Stop(done, errStop), context.Canceled)
		time.Sleep(2 * time.Minute)
		require.True(t, ended.Load())
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
	})
}

func TestWaitUnderACancelledOwnerWaitsForTheTasks(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var g *async.Group
		opened := make(chan struct{})
		var waited error
		var outsider sync.WaitGroup
		outsider.Go(func() {
			<-opened
			waited = g.Wait(ctx)
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		})
		err := async.Scope(ctx, func(ctx context.Context) error {
			g = async.NewGroup(ctx)
			require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Minute); return context.Cause(ctx) }))
			close(opened)
			time.Sleep(time.Second)
			return errPlanted
		})
		outsider.Wait()
		require.ErrorIs(t, waited, errPlanted, "why it was stopped")
		require.Equal(t, errPlanted, err, "an echo of that is nothing new to the owner")
	})
}

// TestAPanicInAGroupIsRaisedOnce, by one of those who wait, and returned to the
// others.
func TestAPanicInAGroupIsRaisedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		require.NoError(t, g.Go(func(ctx context.Context) error {
			<-ctx.Done() // cancelled at once, not when somebody waits
			require.ErrorIs(t, context.Cause(ctx), errPlanted)
			return nil
		}))
		require.NoError(t, g.Go(func(context.Context) error { panic(errPlanted) }))
		synctest.Wait()
		require.ErrorIs(t, context.Cause(g.Context()), errPlanted)
		var raised, returned atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				defer func() {
					if v := recover(); v != nil {
						require.ErrorIs(t, v.(*async.PanicError), errPlanted)
						raised.Add(1)
					}
				}()
				err := g.Stop(ctx, errStop)
				var p *async.PanicError
				require.ErrorAs(t, err, &p)
				returned.Add(1)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, raised.Load())
		require.EqualValues(t, 19, returned.Load())
	})
}

// TestAPanicInAGroupThatNobodyWaitsForIsTheOwners, and a later wait returns it.
func TestAPanicInAGroupThatNobodyWaitsForIsTheOwners(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var g *async.Group
		v := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				g = async.NewGroup(ctx)
				require.NoError(t, g.Go(func(context.Context) error { panic(errPlanted) }))
				synctest.Wait()
				require.NoError(t, ctx.Err(), "the owner is told at its end")
				return nil
			})
		})
		require.ErrorIs(t, v.(error), errPlanted)
		require.ErrorIs(t, g.Wait(ctx), errPlanted)
		require.ErrorIs(t, g.Stop(ctx, nil), errPlanted)
	})
}

func TestAFailureOfAGroupThatNobodyWasGivenReachesTheOwnerAtItsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		use   func(t *testing.T, ctx context.Context, g *async.Group)
		fails bool
	}{
		"nobody": {func(*testing.T, context.Context, *async.Group) {}, true},
		"Stop": {func(t *testing.T, ctx context.Context, g *async.Group) {
			require.ErrorIs(t, g.Stop(ctx, nil), errPlanted)
		}, false},
		"Wait":    {func(t *testing.T, ctx context.Context, g *async.Group) { require.ErrorIs(t, g.Wait(ctx), errPlanted) }, false},
		"Cancel":  {func(_ *testing.T, _ context.Context, g *async.Group) { g.Cancel(nil) }, true},
		"cut off": {func(_ *testing.T, ctx context.Context, g *async.Group) { _ = g.Stop(done(ctx), nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					g := async.NewGroup(ctx)
					require.NoError(t, g.Go(func(context.Context) error { time.Sleep(time.Second); return errPlanted }))
					test.use(t, ctx, g)
					time.Sleep(time.Minute)
					require.NoError(t, ctx.Err())
					return nil
				})
				if test.fails {
					require.ErrorIs(t, err, errPlanted)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// done returns ctx as it is when it has been cancelled.
func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// TestThatAGroupWasStoppedIsNoFailureOfItsOwner: those who have stopped it know.
func TestThatAGroupWasStoppedIsNoFailureOfItsOwner(t *testing.T) {
	for name, stop := range map[string]func(g *async.Group, ctx context.Context){
		"Cancel":       func(g *async.Group, _ context.Context) { g.Cancel(errStop) },
		"Stop":         func(g *async.Group, ctx context.Context) { _ = g.Stop(ctx, errStop) },
		"Stop cut off": func(g *async.Group, ctx context.Context) { _ = g.Stop(done(ctx), errStop) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var g *async.Group
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					g = async.NewGroup(ctx)
					require.NoError(t, g.Go(func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }))
					synctest.Wait()
					stop(g, ctx)
					return nil
				}))
				err := g.Wait(ctx)
				require.ErrorIs(t, err, errStop, "but who asks is told that work was cut short")
				var e *async.ScopeError
				require.ErrorAs(t, err, &e)
				require.Empty(t, e.Errors)
			})
		})
	}
}

// TestADaemonInAGroupThatStopsWhenToldIsNoFailure, and the same unasked is.
func TestADaemonInAGroupThatStopsWhenToldIsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		errClosed := errors.New("server closed")
		serve := func(ctx context.Context) error { <-ctx.Done(); return errClosed }
		for name, end := range map[string]func(g *async.Group) error{
			"Stop": func(g *async.Group) error { return g.Stop(ctx, errStop) },
			"Wait": func(g *async.Group) error { return g.Wait(ctx) },
		} {
			g := async.NewGroup(ctx)
			require.NoError(t, g.Go(serve, async.Daemon()))
			require.NoError(t, g.Go(nothing))
			synctest.Wait()
			require.NoError(t, g.Context().Err(), "daemons are dismissed by the first Wait or Stop")
			require.NoError(t, end(g), name)
		}
		g := async.NewGroup(ctx)
		require.NoError(t, g.Go(func(context.Context) error { return errClosed }, async.Daemon()))
		synctest.Wait()
		require.ErrorIs(t, g.Stop(ctx, errStop), errClosed, "it closed unasked")
	})
}

func TestAWaitForAGroupThatLeadsBackIsACycle(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx, async.Name("g"))
		var f *async.Future[struct{}]
		start := make(chan struct{})
		f = async.Start(ctx, func(ctx context.Context) error {
			<-start
			return g.Wait(ctx)
		}, async.Name("waiter"))
		require.NoError(t, g.Go(func(ctx context.Context) error {
			close(start)
			synctest.Wait()
			_, err := f.Join(ctx)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			require.ErrorContains(t, err, "waiter -> g")
			return nil
		}, async.Name("member")))
		_, err := f.Wait(ctx)
		require.NoError(t, err)
	})
}

// TestATaskLendsItsSlotInAGroupsStopAndWait, at n = 1: the group is inside the Limit.
func TestATaskLendsItsSlotInAGroupsStopAndWait(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				for _, end := range []func(g *async.Group) error{
					func(g *async.Group) error { return g.Wait(ctx) },
					func(g *async.Group) error { return g.Stop(ctx, errStop) },
				} {
					g := async.NewGroup(ctx)
					for range 3 {
						require.NoError(t, g.Go(func(context.Context) error { time.Sleep(time.Second); return nil }))
					}
					if err := end(g); err != nil {
						require.ErrorIs(t, err, errStop) // those that queued were skipped
					}
				}
				return nil
			})
			return nil
		}, async.Limit(1)))
	})
}
