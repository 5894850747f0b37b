package async_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/stretchr/testify/require"
)

// A group at the root that has failed while nobody waits: the text beside the failure is told, too.
func TestARootGroupTellsTextsBesideItsFailure(t *testing.T) {
	for name, end := range map[string]func(g *async.Group, ctx context.Context){
		"it fails, Shutdown": func(g *async.Group, ctx context.Context) { time.Sleep(time.Minute); _ = async.Shutdown(ctx) },
		"a wait that is cut off": func(g *async.Group, ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_ = g.Wait(ctx)
		},
	} {
		for _, how := range []string{"error", "panic"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
					g := async.NewGroup(ctx)
					_ = g.Go(onStop(rows))
					_ = g.Go(func(ctx context.Context) error {
						time.Sleep(time.Second)
						if how == "panic" {
							panic("failure A")
						}
						return errFirst
					})
					end(g, ctx)
					time.Sleep(time.Hour)
					synctest.Wait()
					if r.count("failure A") != 1 || r.count(rows) != 1 {
						t.Errorf("failure %d, text %d: %s", r.count("failure A"), r.count(rows), r.all())
					}
				})
			})
		}
	}
}

// Two failures are told to the root once, though nobody waits for ten seconds and more.
func TestARootGroupTellsTwoFailuresOnce(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		g := async.NewGroup(ctx)
		_ = g.Go(func(context.Context) error { return errFirst })
		_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return errSecond })
		time.Sleep(time.Minute)
		_ = async.Shutdown(ctx)
		synctest.Wait()
		if r.count("failure A") != 1 || r.count("failure B") != 1 {
			t.Errorf("told %s", r.all())
		}
	})
}

// A dismissed group: what its owner is told, in each way of being cut off.
func TestADismissedGroupNamesWhatWasCutOff(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, start := range map[string]func(g *async.Group){
		"Go": func(g *async.Group) { _ = g.Go(wait, async.Name("victim")) },
		"Go ctx.Err": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, async.Name("victim"))
		},
		"Start": func(g *async.Group) { async.Start(g.Context(), wait, async.Name("victim")) },
		"Poll": func(g *async.Group) {
			async.Repeat(g.Context(), async.Every(time.Second), func(context.Context) error { return nil }, async.Name("victim"))
		},
		"Restart": func(g *async.Group) {
			_ = g.Go(wait, async.Name("victim"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		},
		"Restart failed": func(g *async.Group) {
			n := 0
			_ = g.Go(func(ctx context.Context) error {
				if n++; n == 1 {
					return errSecond
				}
				return wait(ctx)
			}, async.Name("victim"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		},
		"in a pause": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { return errSecond }, async.Name("victim"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}))
		},
		"nested group": func(g *async.Group) {
			_ = async.NewGroup(g.Context(), async.Name("inner")).Go(wait, async.Name("victim"))
		},
		"nested task": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { async.Go(ctx, wait); return nil }, async.Name("victim"))
		},
		"queued": func(g *async.Group) {
			async.Go(g.Context(), func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, wait); async.Go(ctx, wait); return nil }, async.Limit(1))
			}, async.Name("victim"))
		},
		"forkjoin": func(g *async.Group) {
			async.ForkJoin(g.Context(), []int{1}, func(ctx context.Context, _ int) (int, error) { return 0, wait(ctx) }, async.Name("victim"))
		},
		"race": func(g *async.Group) {
			async.Race(g.Context(), func(ctx context.Context) (int, error) { return 0, wait(ctx) })
		},
		"failing scope": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return errFirst }, async.Name("victim"))
		},
		"daemon with a task": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { async.Go(ctx, wait, async.Name("quiet")); return nil }, async.Daemon())
		},
		"daemon":  func(g *async.Group) { _ = g.Go(wait, async.Name("quiet"), async.Daemon()) },
		"nothing": func(g *async.Group) {},
		"nil": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("quiet"))
		},
		"withoutcancel": func(g *async.Group) {
			async.Go(context.WithoutCancel(g.Context()), func(ctx context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("quiet"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start(async.NewGroup(ctx, async.Name("G")))
					time.Sleep(10 * time.Second)
					return nil
				})
				synctest.Wait()
				quiet := strings.HasPrefix(name, "daemon") || name == "nothing" || name == "nil" || name == "withoutcancel"
				loud := err != nil
				if quiet == loud || r.all() != "" {
					t.Errorf("%v\nroot: %s", err, r.all())
				}
				t.Logf("%v", err)
			})
		})
	}
}

// A server may make a group for each connection. The rest of it is looked for in
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

func slowToStop(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(10 * time.Millisecond)
	return nil
}

// groupWaits are waits for a group whose task takes its time to stop.
var groupWaits = map[string]func(ctx context.Context) error{
	"Wait": func(ctx context.Context) error {
		g := async.NewGroup(ctx)
		_ = g.Go(slowToStop)
		return g.Wait(ctx)
	},
	"Stop": func(ctx context.Context) error {
		g := async.NewGroup(ctx)
		_ = g.Go(slowToStop)
		<-ctx.Done()
		return g.Stop(ctx, errStop)
	},
}

func TestAWaitForAGroupThatItsOwnCancelledScopeCutsShortIsNoFailure(t *testing.T) {
	for name, wait := range groupWaits {
		t.Run(name+", under a leader", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, wait)
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Millisecond); return nil }, async.Leader())
					return nil
				}))
			})
		})
		t.Run(name+", beside a failure", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, errPlanted, async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, wait)
					time.Sleep(time.Millisecond)
					return errPlanted
				}))
			})
		})
		t.Run(name+", of a ctx of its own is one", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left *async.StragglerError
				require.ErrorAs(t, async.Scope(t.Context(), func(ctx context.Context) error {
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					defer cancel()
					return wait(short)
				}), &left)
			})
		})
	}
}
