package async_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEndOfItsOwnerDismissesAGroupAndTellsWhatItHasCutOff(t *testing.T) {
	for name, derive := range map[string]func(ctx context.Context) context.Context{
		"its own ctx":   func(ctx context.Context) context.Context { return ctx },
		"WithoutCancel": context.WithoutCancel,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var g *async.Group
				waits := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
				start := time.Now()
				err := async.Scope(ctx, func(ctx context.Context) error {
					g = async.NewGroup(derive(ctx), async.Name("conns"))
					_ = g.Go(waits, async.Name("cut off"))
					_ = g.Go(waits, async.Name("daemon"), async.Daemon())
					_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("came to its end"))
					async.Start(g.Context(), waits, async.Name("future"))
					async.Go(ctx, sleeps(time.Second))
					return nil
				})
				require.Equal(t, time.Second, time.Since(start), "it is dismissed when the others have ended")
				require.ErrorIs(t, errors.Join(stoppedOf(err)...), async.ErrDismissed)
				for _, told := range []string{"conns", "cut off", "future"} {
					require.ErrorContains(t, err, told)
				}
				require.NotContains(t, err.Error(), "daemon")
				require.NotContains(t, err.Error(), "came to its end")
				require.ErrorIs(t, g.Wait(ctx), async.ErrDismissed, "a waiter is told everything")
			})
		})
	}
}

func TestWhatADismissedGroupHasCutOffIsToldBesideItsFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			g := async.NewGroup(ctx)
			async.OnExit(g.Context(), func(context.Context, error) error { return errPlanted })
			return g.Go(func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("cut off"))
		})
		require.ErrorIs(t, err, errPlanted)
		require.ErrorIs(t, errors.Join(stoppedOf(err)...), async.ErrDismissed)
		require.ErrorContains(t, err, "cut off")
	})
}

func TestOnStallNamesATaskOfADismissedGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		r := newStallRecord()
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.NewGroup(ctx, async.Name("conns")).Go(sleeps(time.Minute), async.Name("loop"))
		}, r.after(time.Second)))
		require.Equal(t, "loop", r.last.Left[0].Task)
	})
}

func TestAGroupHoldsNobodyUpAndIsClosedWithItsOwner(t *testing.T) {
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
			used, unused = async.NewGroup(ctx), async.NewGroup(ctx)
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
			require.Equal(t, async.ErrDismissed, context.Cause(g.Context()))
			require.NoError(t, g.Wait(ctx))
		}
	})
}

func TestExitHooksOfAGroupRunAfterItsTasksAndSeeHowItWent(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
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

func TestADaemonInAGroupIsDismissedQuietly(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var told error
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			g := async.NewGroup(ctx)
			require.NoError(t, g.Go(func(ctx context.Context) error {
				<-ctx.Done()
				told = context.Cause(ctx)
				return errors.New("http: Server closed")
			}, async.Daemon()))
			async.Go(ctx, sleeps(time.Second))
			return nil
		}))
		require.Equal(t, async.ErrDismissed, told)
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
				g := async.NewGroup(derive(ctx))
				if name == "value" {
					require.Equal(t, "value", g.Context().Value(key{}))
				}
				idle := async.NewGroup(derive(ctx))
				require.NoError(t, g.Go(func(ctx context.Context) error {
					<-ctx.Done()
					require.Equal(t, errPlanted, context.Cause(ctx))
					<-idle.Context().Done() // an empty one is cancelled, too, perhaps a moment later
					require.ErrorIs(t, idle.Context().Err(), context.Canceled)
					require.Equal(t, errPlanted, context.Cause(idle.Context()))
					return nil
				}))
				return errPlanted
			}), errPlanted, name)
		}
		timed, cancel := context.WithTimeoutCause(ctx, time.Second, errPlanted)
		defer cancel()
		g := async.NewGroup(timed)
		async.OnExit(g.Context(), func(context.Context, error) error { return nil })
		<-g.Context().Done()
		require.Equal(t, errPlanted, context.Cause(g.Context()), "a ctx of its own bounds it")
		free := async.NewGroup(context.WithoutCancel(timed))
		require.NoError(t, free.Context().Err())
		require.NoError(t, free.Go(nothing))
		require.NoError(t, free.Wait(ctx))
	})
}

func TestGroupsNest(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		outer := async.NewGroup(ctx, async.Name("outer"))
		inner := async.NewGroup(outer.Context(), async.Name("inner"))
		var own *async.Group
		require.NoError(t, outer.Go(func(ctx context.Context) error {
			own = async.NewGroup(ctx)
			require.NoError(t, own.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }))
			require.ErrorIs(t, outer.Wait(inner.Context()), async.ErrAwaitCycle)
			return nil
		}))
		require.NoError(t, inner.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }))
		synctest.Wait()
		require.NoError(t, outer.Stop(ctx, errStop))
		for _, g := range []*async.Group{inner, own} {
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		}
		require.Equal(t, errStop, context.Cause(inner.Context()))
		require.Equal(t, async.ErrDismissed, context.Cause(own.Context()), "its owner had ended")
	})
}

// TestTheEndOfAScopeJoinsAGroupDeepInGroups, each of which is a member of the next.
func TestTheEndOfAScopeJoinsAGroupDeepInGroups(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			deep := ctx
			for range 100 {
				deep = async.NewGroup(deep).Context()
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
			g = async.NewGroup(ctx)
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

func TestShutdownDismissesTheGroupsAtTheRootWhenTheOthersHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []error
		ctx := bridge.NewRoot(t.Context(), func(err error) { lost = append(lost, err) }, func(string) {})
		busy, idle, serving := async.NewGroup(ctx, async.Name("busy")), async.NewGroup(ctx), async.NewGroup(ctx)
		hooked := false
		async.OnExit(idle.Context(), func(context.Context, error) error { hooked = true; return nil })
		require.NoError(t, busy.Go(func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("upload")))
		require.NoError(t, serving.Go(func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, async.Daemon()))
		async.Detach(ctx, "detached", sleeps(time.Minute))
		require.ElementsMatch(t, []string{"busy", "group", "group", "detached"}, asynctest.Live(ctx))
		start := time.Now()
		err := async.Shutdown(ctx)
		require.Equal(t, time.Minute, time.Since(start))
		require.True(t, hooked)
		for _, g := range []*async.Group{busy, idle, serving} {
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded)
		}
		require.Empty(t, asynctest.Live(ctx))
		require.Empty(t, lost)
		require.ErrorIs(t, errors.Join(stoppedOf(err)...), async.ErrDismissed)
		require.ErrorContains(t, err, "busy")
		require.ErrorContains(t, err, "upload")
	})
}

func TestShutdownThatIsCutShortCancelsGroupsAndNamesWhoIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := asynctest.Root(t.Context())
		g, stubborn := async.NewGroup(ctx), async.NewGroup(ctx)
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
		"Timeout runs from NewGroup": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx, async.Timeout(time.Second), async.Name("g"))
			start := time.Now()
			require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }))
			err := g.Wait(ctx)
			require.Equal(t, time.Second, time.Since(start))
			var limit *async.TimeoutError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, "g", limit.Task)
		},
		"Limit": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx, async.Limit(2))
			start := time.Now()
			for range 6 {
				require.NoError(t, g.Go(sleeps(time.Second)))
			}
			require.NoError(t, g.Wait(ctx))
			require.Equal(t, 3*time.Second, time.Since(start))
		},
		"On": func(t *testing.T, ctx context.Context) {
			n := 0
			g := async.NewGroup(ctx, async.On(executorFunc(func(task func()) error { n++; go task(); return nil })))
			require.NoError(t, g.Go(nothing))
			require.NoError(t, g.Wait(ctx))
			require.Equal(t, 1, n)
		},
		"Observe": func(t *testing.T, ctx context.Context) {
			var inner, outer groupLog
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				g := async.NewGroup(ctx, async.Observe(&inner), async.Name("g"))
				require.NoError(t, g.Go(nothing, async.Name("task")))
				return g.Wait(ctx)
			}, async.Observe(&outer)))
			require.Equal(t, []string{"start task", "end task"}, inner.all)
			require.Equal(t, []string{"start g", "start task", "end task", "end g"}, outer.all)
		},
		"OnStall": func(t *testing.T, ctx context.Context) {
			r := newStallRecord()
			g := async.NewGroup(ctx, r.after(time.Second))
			require.NoError(t, g.Go(sleeps(time.Minute), async.Name("loop")))
			require.NoError(t, g.Stop(ctx, errStop))
			require.Equal(t, "loop", r.last.Left[0].Task)
			require.ErrorIs(t, r.last.Cause, errStop)
		},
		"DetachAfter": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx, async.DetachAfter(time.Second), async.Name("g"))
			require.NoError(t, g.Go(sleeps(time.Minute), async.Name("loop")))
			var left *async.StragglerError
			require.ErrorAs(t, g.Stop(ctx, errStop), &left)
			require.Equal(t, "loop", left.Left[0].Task)
			require.ErrorIs(t, g.Go(mustNotRun(t)), async.ErrScopeEnded, "Stop has returned")
			require.NoError(t, async.Shutdown(ctx), "it is on record at the root")
		},
		"HookTimeout": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx, async.HookTimeout(time.Second))
			async.OnExit(g.Context(), func(ctx context.Context, _ error) error { <-ctx.Done(); return nil })
			start := time.Now()
			require.ErrorIs(t, g.Wait(ctx), context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start))
		},
		"OnFailure": func(t *testing.T, ctx context.Context) {
			asked := 0
			g := async.NewGroup(ctx, async.OnFailure(func(error) error { asked++; return nil }))
			require.NoError(t, g.Go(func(context.Context) error { return errPlanted }))
			synctest.Wait()
			require.NoError(t, g.Context().Err())
			require.NoError(t, g.Wait(ctx))
			require.Equal(t, 1, asked)
		},
		"Name": func(t *testing.T, ctx context.Context) {
			g := async.NewGroup(ctx, async.Name("conns"))
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

// An error in a group in which nothing runs is told, though nobody holds the group.
func TestWhatGoesWrongInAGroupAtRestIsTold(t *testing.T) {
	for name, goesWrong := range map[string]func(ctx context.Context){
		"a value that comes too late for its promise": func(ctx context.Context) {
			_, p := async.NewPromise[int](ctx, async.OnDiscard(func(int) { panic(errPlanted) }))
			p.Resolve(1)
			p.Resolve(2)
		},
		"a value that nobody wants any more": func(ctx context.Context) {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(func(int) { panic(errPlanted) }))
			p.Resolve(1)
			f.Cancel(nil)
		},
		"a promise that is rejected": func(ctx context.Context) {
			_, p := async.NewPromise[int](ctx)
			p.Reject(errPlanted)
		},
		"a callback has it fail": func(ctx context.Context) {
			async.Fail(ctx, errPlanted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("in a scope", func(t *testing.T) {
				require.ErrorIs(t, async.Scope(t.Context(), func(ctx context.Context) error {
					goesWrong(async.NewGroup(ctx).Context())
					return nil
				}), errPlanted)
			})
			t.Run("at a root", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, check := asynctest.Root(t.Context())
					goesWrong(async.NewGroup(ctx).Context())
					time.Sleep(time.Minute)
					synctest.Wait()
					require.ErrorIs(t, check(), errPlanted)
				})
			})
		})
	}
}

func TestAGroupIsCancelledWhenAChannelCloses(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for name, early := range map[string]bool{"with a task": false, "at rest": true} {
			ch := make(chan struct{})
			g := async.NewGroup(ctx, async.StopOn(ch, errStop))
			if early {
				close(ch)
			}
			require.NoError(t, g.Go(func(ctx context.Context) error {
				<-ctx.Done()
				require.Equal(t, errStop, context.Cause(ctx), name)
				return nil
			}))
			synctest.Wait()
			if !early {
				close(ch)
			}
			require.NoError(t, g.Wait(ctx), name)
		}
	})
}

// TestAGroupThatStopsOnAChannelLeavesNothing when it ends before that is closed.
func TestAGroupThatStopsOnAChannelLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx, async.StopOn(make(chan struct{}), errStop))
		require.NoError(t, g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }))
		synctest.Wait()
		require.NoError(t, g.Stop(ctx, nil))
		// The bubble fails if a goroutine is left.
	})
}

// The owner of a group may end while NewGroup tells observers of it: the start is told first.
func TestAGroupIsToldToHaveStartedBeforeItsOwnerEndsIt(t *testing.T) {
	var mu sync.Mutex
	running := 0
	for range 300 {
		_ = async.Scope(t.Context(), func(owner context.Context) error {
			async.Go(owner, func(ctx context.Context) error {
				<-ctx.Done()
				for range 5 {
					async.NewGroup(owner, async.Name("g"))
				}
				return nil
			}, async.Daemon())
			return nil
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case e.Task != "g":
			case e.Kind == async.EventStart:
				running++
			case e.Kind == async.EventEnd:
				running--
				assert.GreaterOrEqual(t, running, 0)
			}
		})))
	}
	assert.Zero(t, running)
}
