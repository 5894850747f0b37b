package async_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAGroupThatIsNeverStoppedKeepsItsOwnerAndOnStallNamesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		r := newStallRecord()
		start := time.Now()
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			g := async.Open(ctx, async.Name("conns"))
			return g.Go(sleeps(time.Minute), async.Name("loop"))
		}, r.after(time.Second)))
		require.GreaterOrEqual(t, time.Since(start), time.Minute)
		require.NoError(t, r.last.Cause, "nobody has told it")
		require.Equal(t, "conns", r.last.Left[0].Task)
		require.Equal(t, "loop", r.last.Left[1].Task)
		require.Len(t, r.last.Left, 2)
	})
}

func TestAnEmptyGroupHoldsNobodyUpAndIsClosedWithItsOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []string
		hook := func(ctx context.Context, name string) {
			async.OnExit(ctx, func(ctx context.Context, outcome error) error {
				order = append(order, name)
				require.NoError(t, ctx.Err())
				return nil
			})
		}
		var used, unused *async.Group
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			hook(ctx, "owner")
			used, unused = async.Open(ctx), async.Open(ctx)
			hook(used.Context(), "group")
			require.NoError(t, used.Go(nothing))
			async.Go(ctx, func(context.Context) error {
				time.Sleep(time.Second)
				require.NoError(t, used.Go(func(context.Context) error {
					time.Sleep(time.Second)
					order = append(order, "task")
					return nil
				}), "it is open as long as its owner")
				return nil
			})
			return nil
		}))
		require.Equal(t, []string{"task", "group", "owner"}, order)
		for _, g := range []*async.Group{used, unused} {
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
			require.Equal(t, async.ErrScopeEnded, context.Cause(g.Context()))
			require.NoError(t, g.Wait(ctx))
		}
	})
}

func TestExitHooksOfAGroupRunAfterItsTasksAndSeeHowItWent(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.Open(ctx)
		var seen []error
		ended := false
		for range 2 {
			async.OnExit(g.Context(), func(ctx context.Context, outcome error) error {
				require.True(t, ended)
				seen = append(seen, outcome)
				return ctx.Err()
			})
		}
		require.NoError(t, g.Go(func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return errPlanted
		}))
		synctest.Wait()
		err := g.Stop(ctx, errStop)
		require.ErrorIs(t, err, errPlanted)
		require.Len(t, seen, 2)
		require.ErrorIs(t, seen[0], errPlanted)
	})
}

func TestAGroupOpenedAsADaemonDoesNotKeepItsOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var told error
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			g := async.Open(ctx, async.Daemon())
			require.NoError(t, g.Go(func(ctx context.Context) error {
				<-ctx.Done()
				told = context.Cause(ctx)
				return told
			}))
			async.Go(ctx, sleeps(time.Second))
			return nil
		}))
		require.Equal(t, async.ErrScopeDone, told)
	})
}

func TestAGroupHasTheValuesOfItsCtxAndIsCancelledWithIt(t *testing.T) {
	type key struct{}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for name, derive := range map[string]func(context.Context) context.Context{
			"own": func(ctx context.Context) context.Context { return ctx },
			"value": func(ctx context.Context) context.Context {
				return context.WithValue(ctx, key{}, "value")
			},
		} {
			require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
				g := async.Open(derive(ctx))
				if name == "value" {
					require.Equal(t, "value", g.Context().Value(key{}))
				}
				idle := async.Open(derive(ctx))
				require.NoError(t, g.Go(func(ctx context.Context) error {
					<-ctx.Done()
					require.Equal(t, errPlanted, context.Cause(ctx))
					require.ErrorIs(t, idle.Context().Err(), context.Canceled, "one at rest is, too")
					require.Equal(t, errPlanted, context.Cause(idle.Context()))
					return nil
				}))
				return errPlanted
			}), errPlanted, name)
		}
		timed, cancel := context.WithTimeoutCause(ctx, time.Second, errPlanted)
		defer cancel()
		g := async.Open(timed)
		async.OnExit(g.Context(), func(context.Context, error) error { return nil })
		<-g.Context().Done()
		require.Equal(t, errPlanted, context.Cause(g.Context()), "a ctx of its own bounds it")
		free := async.Open(context.WithoutCancel(timed))
		require.NoError(t, free.Context().Err())
		require.NoError(t, free.Go(nothing))
		require.NoError(t, free.Wait(ctx))
	})
}

func TestGroupsNest(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		outer := async.Open(ctx, async.Name("outer"))
		inner := async.Open(outer.Context(), async.Name("inner"))
		var own *async.Group
		require.NoError(t, outer.Go(func(ctx context.Context) error {
			own = async.Open(ctx)
			require.NoError(t, own.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }))
			require.ErrorIs(t, outer.Wait(inner.Context()), async.ErrAwaitCycle)
			return nil
		}))
		require.NoError(t, inner.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }))
		synctest.Wait()
		require.NoError(t, outer.Stop(ctx, errStop))
		for _, g := range []*async.Group{inner, own} {
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
			require.ErrorIs(t, context.Cause(g.Context()), errStop)
		}
	})
}

// TestADeepGroupAtRestWakesAllAround: each was empty, and is a member of the next
// while the innermost has a task.
func TestADeepGroupAtRestWakesAllAround(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			deep := ctx
			for range 100 {
				deep = async.Open(deep).Context()
			}
			async.Go(deep, sleeps(time.Minute))
			time.Sleep(time.Second)
			return nil
		}))
	})
}

func TestADetachingScopeLeavesItsGroupAtTheRoot(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx := rootContext(t)
		var g *async.Group
		err := async.Scope(ctx, func(ctx context.Context) error {
			g = async.Open(ctx)
			require.NoError(t, g.Go(sleeps(time.Minute)))
			return errPlanted
		}, async.DetachAfter(time.Second), async.Name("scope"))
		require.ErrorIs(t, err, errPlanted)
		require.Equal(t, []string{"scope"}, asynctest.Live(ctx))
		require.NoError(t, g.Wait(ctx))
		synctest.Wait()
		require.Empty(t, asynctest.Live(ctx))
	})
}

func TestShutdownWaitsForGroupsAtTheRootAndEndsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := rootContext(t)
		busy, idle, serving := async.Open(ctx, async.Name("busy")), async.Open(ctx), async.Open(ctx, async.Daemon())
		hooked := false
		async.OnExit(idle.Context(), func(context.Context, error) error { hooked = true; return nil })
		require.NoError(t, busy.Go(sleeps(time.Minute)))
		require.NoError(t, serving.Go(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }))
		require.ElementsMatch(t, []string{"busy", "group"}, asynctest.Live(ctx))
		start := time.Now()
		require.NoError(t, async.Shutdown(ctx))
		require.Equal(t, time.Minute, time.Since(start))
		require.True(t, hooked)
		for _, g := range []*async.Group{busy, idle, serving} {
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		}
		require.Empty(t, asynctest.Live(ctx))
	})
}

func TestShutdownThatIsCutShortCancelsGroupsAndNamesWhoIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := asynctest.Root(t.Context())
		g, stubborn := async.Open(ctx), async.Open(ctx)
		require.NoError(t, g.Go(func(ctx context.Context) error {
			<-ctx.Done()
			require.Equal(t, async.ErrShutdown, context.Cause(ctx))
			return nil
		}))
		require.NoError(t, stubborn.Go(sleeps(time.Hour), async.Name("stubborn")))
		err := async.Shutdown(done(ctx))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		require.NoError(t, async.Shutdown(ctx))
	})
}

// TestTheOptionsOfScopesHoldForGroups, one after the other.
func TestTheOptionsOfScopesHoldForGroups(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, ctx context.Context){
		"Timeout runs from Open": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx, async.Timeout(time.Second), async.Name("g"))
			start := time.Now()
			require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }))
			err := g.Wait(ctx)
			require.Equal(t, time.Second, time.Since(start))
			var limit *async.TimeoutError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, "g", limit.Task)
		},
		"Limit": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx, async.Limit(2))
			start := time.Now()
			for range 6 {
				require.NoError(t, g.Go(sleeps(time.Second)))
			}
			require.NoError(t, g.Wait(ctx))
			require.Equal(t, 3*time.Second, time.Since(start))
		},
		"On": func(t *testing.T, ctx context.Context) {
			n := 0
			g := async.Open(ctx, async.On(executorFunc(func(task func()) error { n++; go task(); return nil })))
			require.NoError(t, g.Go(nothing))
			require.NoError(t, g.Wait(ctx))
			require.Equal(t, 1, n)
		},
		"Observe": func(t *testing.T, ctx context.Context) {
			var inner, outer groupLog
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				g := async.Open(ctx, async.Observe(&inner), async.Name("g"))
				require.NoError(t, g.Go(nothing, async.Name("task")))
				return g.Wait(ctx)
			}, async.Observe(&outer)))
			require.Equal(t, []string{"start task", "end task"}, inner.all)
			require.Equal(t, []string{"start g", "start task", "end task", "end g"}, outer.all)
		},
		"OnStall": func(t *testing.T, ctx context.Context) {
			r := newStallRecord()
			g := async.Open(ctx, r.after(time.Second))
			require.NoError(t, g.Go(sleeps(time.Minute), async.Name("loop")))
			require.NoError(t, g.Stop(ctx, errStop))
			require.Equal(t, "loop", r.last.Left[0].Task)
			require.ErrorIs(t, r.last.Cause, errStop)
		},
		"DetachAfter": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx, async.DetachAfter(time.Second), async.Name("g"))
			require.NoError(t, g.Go(sleeps(time.Minute), async.Name("loop")))
			var left *async.StragglerError
			require.ErrorAs(t, g.Stop(ctx, errStop), &left)
			require.Equal(t, "loop", left.Left[0].Task)
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded, "Stop has returned")
			require.NoError(t, async.Shutdown(ctx), "it is on record at the root")
		},
		"HookTimeout": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx, async.HookTimeout(time.Second))
			async.OnExit(g.Context(), func(ctx context.Context, _ error) error { <-ctx.Done(); return nil })
			start := time.Now()
			require.ErrorIs(t, g.Wait(ctx), context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start))
		},
		"OnFailure": func(t *testing.T, ctx context.Context) {
			asked := 0
			g := async.Open(ctx, async.OnFailure(func(error) error { asked++; return nil }))
			require.NoError(t, g.Go(func(context.Context) error { return errPlanted }))
			synctest.Wait()
			require.NoError(t, g.Context().Err())
			require.NoError(t, g.Wait(ctx))
			require.Equal(t, 1, asked)
		},
		"Name": func(t *testing.T, ctx context.Context) {
			g := async.Open(ctx, async.Name("conns"))
			require.NoError(t, g.Go(func(context.Context) error { return errors.Join(errPlanted) }))
			require.NoError(t, g.Go(func(context.Context) error { return errStop }))
			require.ErrorContains(t, g.Wait(ctx), "conns")
		},
	} {
		t.Run(name, func(t *testing.T) { inBubble(t, test) })
	}
}

// A groupLog is an observer that writes down what starts and ends.
type groupLog struct {
	mu  sync.Mutex
	all []string
}

func (l *groupLog) Observe(e async.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := "end "
	if e.Kind == async.EventStart {
		what = "start "
	}
	l.all = append(l.all, what+e.Task)
}
