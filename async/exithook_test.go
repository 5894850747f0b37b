package async_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
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

// TestExitHooksRunOneAtATimeThoughDetachAfterHasPassed, and each sees the
// outcome.
func TestExitHooksRunOneAtATimeThoughDetachAfterHasPassed(t *testing.T) {
	for name, left := range map[string]time.Duration{"none": 0, "a straggler": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(ctx)
				var c runCount
				require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
					for range 3 {
						async.OnExit(ctx, func(_ context.Context, outcome error) error {
							require.ErrorIs(t, outcome, errPlanted)
							c.enter()
							defer c.out()
							time.Sleep(2 * time.Second)
							return nil
						})
					}
					async.Go(ctx, func(context.Context) error { time.Sleep(left); return nil })
					return errPlanted
				}, async.DetachAfter(time.Second)), errPlanted)
				require.NoError(t, async.Shutdown(ctx))
				require.EqualValues(t, 1, c.most.Load())
				require.EqualValues(t, 3, c.entered.Load())
			})
		})
	}
}

func TestAnExitHookDoesNotHoldUpItsTaskUnderALimit(t *testing.T) {
	for name, hooks := range map[string]int{"none": 0, "one": 1} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				start := time.Now()
				f := async.Execute(ctx, func(ctx context.Context) (int, error) {
					for range hooks {
						async.OnExit(ctx, func(context.Context, error) error { return nil })
					}
					return 1, nil
				})
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				_, err := f.Wait(ctx)
				tookAbout(t, 0, start)
				return err
			})
		})
	}
}

func TestALateExitHookHasTheHookTimeoutOfItsScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var kept context.Context
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { kept = ctx; return nil }, async.HookTimeout(time.Minute)))
		ran := false
		async.OnExit(kept, func(ctx context.Context, _ error) error {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Minute, time.Until(deadline))
			ran = true
			return nil
		})
		require.True(t, ran)
	})
}

func TestAnExitHookOnAnEndedScopeRunsAtOnceOnTheCallersGoroutine(t *testing.T) {
	withStoredContexts(t, func(t *testing.T, _, ctx context.Context) {
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
			exits := 0 // not atomic: it is counted on this goroutine
			async.OnExit(ctx, func(ctx context.Context, outcome error) error {
				exits++
				require.Equal(t, async.ErrScopeEnded, outcome)
				require.NoError(t, ctx.Err())
				_, ok := ctx.Deadline()
				require.True(t, ok)
				return nil
			})
			require.Equal(t, 1, exits)
		}
	})
}

func TestAHooksErrorInACancelledScopeMatchesItsErrAndCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	cancel(errPlanted)
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error { return io.EOF })
		return nil
	})
	for _, want := range []error{io.EOF, context.Canceled, errPlanted} {
		require.ErrorIs(t, err, want)
	}
}

// An endRecord notes that it was told, and may do something then.
type endRecord struct {
	name  string
	told  *[]string
	then  func()
	bytes []byte
}

func (e *endRecord) ScopeEnds(bridge.Ending, error) {
	*e.told = append(*e.told, e.name)
	if e.then != nil {
		e.then()
	}
}

func TestWhatIsTakenOffAScopeIsNotTold(t *testing.T) {
	var told []string
	var first, fourth bridge.Registration
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		add := func(name string) bridge.Registration {
			return bridge.AtEnd(scope, &endRecord{name: name, told: &told})
		}
		first = add("first")
		second := add("second")
		add("third")
		async.OnExit(ctx, func(context.Context, error) error { told = append(told, "hook"); return nil })
		fourth = bridge.AtEnd(scope, &endRecord{name: "fourth", told: &told, then: func() {
			fourth.Remove() // it is being told: nothing is left to be removed
			first.Remove()
		}})
		fifth := add("fifth")
		require.True(t, second.Remove())
		require.False(t, second.Remove(), "it was removed before")
		fifth.Remove()
		return nil
	}))
	require.Equal(t, []string{"fourth", "hook", "third"}, told)
	fourth.Remove()
	first.Remove()
}

func TestWhatIsTakenOffAScopeIsNotKept(t *testing.T) {
	const n, size = 1000, 10_000
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		var told []string
		bridge.AtEnd(scope, &endRecord{name: "stays", told: &told})
		before := heapInUse()
		for range n {
			bridge.AtEnd(scope, &endRecord{told: &told, bytes: make([]byte, size)}).Remove()
		}
		require.Less(t, heapInUse(), before+n*size/10)
		require.Empty(t, told)
		return nil
	}))
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAtEndOfAnEndedScopeIsNil(t *testing.T) {
	var scope context.Context
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { scope = bridge.ScopeOf(ctx); return nil }))
	require.Nil(t, bridge.AtEnd(scope, &endRecord{}))
}

// TestRemovalMayRaceWithTheEnd, and with other removals: each Ender is told at
// most once, and none after its removal has come back before the scope ended.
func TestRemovalMayRaceWithTheEnd(t *testing.T) {
	const n = 100
	var told []string
	var others sync.WaitGroup
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		for range n {
			r := bridge.AtEnd(scope, &endRecord{told: &told})
			others.Go(func() { r.Remove() })
			others.Go(func() { r.Remove() })
		}
		return nil
	}))
	others.Wait()
	require.LessOrEqual(t, len(told), n)
}

func TestManyCancellationsAtOnceCallTheHookOnceWithTheOneCause(t *testing.T) {
	root := asynctest.Context(t)
	for range 500 {
		derived, cancel := context.WithCancelCause(root)
		var hooks atomic.Int32
		var hookCause, cause error
		running := make(chan struct{})
		f := async.Execute(derived, func(ctx context.Context) (int, error) {
			close(running)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 0, nil
		}, async.OnAbort(func(_ context.Context, why error) error {
			hooks.Add(1)
			hookCause = why
			return nil
		}))
		<-running
		var all sync.WaitGroup
		all.Go(func() { cancel(errCancelWhy) })
		all.Go(func() { f.Cancel(errCancelBoom) })
		all.Go(func() { _, _ = f.Await(root, 1) })
		all.Wait()
		<-f.Done()
		require.LessOrEqual(t, hooks.Load(), int32(1), "none if the handler had returned before")
		require.Error(t, cause)
		if hooks.Load() == 1 {
			require.True(t, hookCause == cause, "%v != %v", hookCause, cause)
		}
		_, _, _ = f.Result()
	}
}

func TestAbortHooksThatMustNotRun(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, ctx context.Context, hook async.TaskOption){
		"success": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			_, err := async.Execute(ctx, answer, hook).Await(ctx, time.Second)
			require.NoError(t, err)
		},
		"its own error": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			_, err := async.Execute(ctx, stubborn(time.Second, 0, errCancelBoom), hook).Await(ctx, 0)
			require.ErrorIs(t, err, errCancelBoom)
		},
		"its own panic": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			_, err := async.Execute(ctx, func(context.Context) (int, error) { panic(errCancelBoom) }, hook).Await(ctx, 0)
			require.ErrorIs(t, err, errCancelBoom)
		},
		"the handler has returned, what it started goes on": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			f := async.Execute(ctx, func(ctx context.Context) (int, error) {
				async.Go(ctx, func(ctx context.Context) error { untilStopped(ctx); return nil })
				return 1, nil
			}, hook)
			_, err := f.Await(ctx, time.Second)
			require.Error(t, err)
			_, _ = f.Wait(ctx)
		},
		"its child's failure after it returned": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return errCancelBoom })
				return 1, nil
			}, hook).Await(ctx, 0)
			require.ErrorIs(t, err, errCancelBoom)
		},
		"only its child is cancelled": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
				_, err := async.Execute(ctx, obedient(0, 1, nil)).Await(ctx, time.Second)
				require.Error(t, err)
				return 1, nil
			}, hook).Await(ctx, 0)
			require.NoError(t, err)
		},
		"only a context derived in it": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return 1, async.Scope(context.WithoutCancel(ctx), func(context.Context) error { return nil })
			}, hook).Await(ctx, 0)
			require.NoError(t, err)
		},
		"Cancel after it settled": func(t *testing.T, ctx context.Context, hook async.TaskOption) {
			f := async.Execute(ctx, answer, hook)
			<-f.Done()
			require.False(t, f.Cancel(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				run(t, ctx, async.OnAbort(func(_ context.Context, cause error) error {
					t.Errorf("called for %v", cause)
					return nil
				}))
				synctest.Wait()
			})
		})
	}
}

func TestTheContextOfAnAbortHook(t *testing.T) {
	type key struct{}
	for _, d := range []time.Duration{0, time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				want := d
				opts := []async.TaskOption{async.HookTimeout(d)}
				if d == 0 {
					want, opts = 5*time.Second, nil
				}
				ran := make(chan struct{})
				f := async.Execute(context.WithValue(ctx, key{}, "value"), obedient(0, 7, nil), append(opts,
					async.OnAbort(func(ctx context.Context, _ error) error {
						defer close(ran)
						start := time.Now()
						require.Equal(t, "value", ctx.Value(key{}))
						require.NoError(t, ctx.Err())
						deadline, ok := ctx.Deadline()
						require.True(t, ok)
						require.Equal(t, start.Add(want), deadline)
						<-ctx.Done()
						tookAbout(t, want, start)
						return nil
					}))...)
				_, err := f.Await(ctx, time.Second)
				require.Error(t, err)
				<-ran
				v, err := f.Await(ctx, 0)
				require.NoError(t, err)
				require.Equal(t, 7, v)
			})
		})
	}
}

func TestWhatAnAbortHookReturnsIsJoinedToItsTasksOutcome(t *testing.T) {
	own := &awaitError{5}
	for name, test := range map[string]struct {
		hook  func(context.Context, error) error
		check func(t *testing.T, err error)
	}{
		"error": {func(context.Context, error) error { return errCancelBoom }, func(t *testing.T, err error) { require.ErrorIs(t, err, errCancelBoom) }},
		"panic": {func(context.Context, error) error { panic(errCancelBoom) }, func(t *testing.T, err error) {
			var p *async.PanicError
			require.ErrorAs(t, err, &p)
			require.Equal(t, errCancelBoom, p.Value)
		}},
		"failure of what it started": {func(ctx context.Context, _ error) error {
			async.Go(ctx, func(context.Context) error { return errCancelBoom })
			return nil
		}, func(t *testing.T, err error) { require.ErrorIs(t, err, errCancelBoom) }},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", the handler fails: ", fails), func(t *testing.T) {
				awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
					var err error
					if fails {
						err = own
					}
					f := async.Execute(ctx, obedient(0, 0, err), async.OnAbort(test.hook))
					_, told := f.Await(ctx, time.Second)
					require.ErrorIs(t, told, context.DeadlineExceeded)
					_, err = f.Wait(ctx)
					test.check(t, err)
					if fails {
						var mine *awaitError
						require.ErrorAs(t, err, &mine, "hooks never replace")
						require.ErrorIs(t, err, told)
					}
				})
			})
		}
	}
}

func TestTheAbortHookOfATaskStartedInACancelledScopeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v *victim
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errCancelBoom })
			<-ctx.Done()
			v = newVictim(ctx)
			return nil
		})
		require.ErrorIs(t, err, errCancelBoom)
		require.ErrorIs(t, v.cause, errCancelBoom)
		require.ErrorIs(t, v.hookCause, errCancelBoom)
		require.EqualValues(t, 1, v.hooks.Load())
	})
}

// TestAnAbortHookThatOverrunsIsNamed while its handler runs as well.
func TestAnAbortHookThatOverrunsIsNamed(t *testing.T) {
	for name, handler := range map[string]func(ctx context.Context) error{
		"alone":              func(ctx context.Context) error { <-ctx.Done(); return nil },
		"beside its handler": func(context.Context) error { time.Sleep(time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, handler, async.Name("victim"), async.HookTimeout(time.Second),
						async.OnAbort(func(context.Context, error) error { time.Sleep(time.Hour); return nil }))
					return errPlanted
				}, async.DetachAfter(3*time.Second))
				require.ErrorContains(t, err, "abort hook of victim")
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
