package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
)

var errHookBoom = errors.New("boom")

// inBubble runs f in a synctest bubble with a root of its own.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, asynctest.Context(t)) })
}

func TestExitHooksRunLastInFirstOutAfterAllTasksEvenIfOneFails(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []int
		taskEnded := false
		err := async.Scope(ctx, func(ctx context.Context) error {
			hook := func(i int, end func() error) {
				async.OnExit(ctx, func(ctx context.Context, outcome error) error {
					require.True(t, taskEnded)
					require.NoError(t, ctx.Err(), "hooks are shielded")
					require.ErrorIs(t, outcome, errHookBoom)
					order = append(order, i)
					return end()
				})
			}
			hook(1, func() error { return nil })
			hook(2, func() error { return errors.New("hook failed") })
			hook(3, func() error { panic("hook panicked") })
			hook(4, func() error { runtime.Goexit(); return nil })
			async.Go(ctx, func(ctx context.Context) error {
				time.Sleep(time.Minute)
				taskEnded = true
				return nil
			})
			return errHookBoom
		})
		require.Equal(t, []int{4, 3, 2, 1}, order)
		var all *async.ScopeError
		require.ErrorAs(t, err, &all)
		require.Equal(t, errHookBoom, all.Errors[0], "hooks come after and never replace")
		require.ErrorContains(t, err, "hook failed")
		require.ErrorIs(t, err, async.ErrGoexit)
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "hook panicked", p.Value)
	})
}

func TestAHookHasADeadlineOfItsOwnAndJoinsWhatItStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []async.ScopeOption
		want time.Duration
	}{
		"by default":       {nil, 5 * time.Second},
		"with HookTimeout": {[]async.ScopeOption{async.HookTimeout(time.Second)}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var lasted time.Duration
				started := false
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(ctx context.Context, _ error) error {
						async.Go(ctx, func(ctx context.Context) error {
							begin := time.Now()
							<-ctx.Done()
							lasted, started = time.Since(begin), true
							return nil
						})
						return nil
					})
					return nil
				}, tc.opts...))
				require.True(t, started)
				require.Equal(t, tc.want, lasted)
			})
		})
	}
}

func TestAnAbortHookRunsOnceBesideTheHandlerAndItsErrorIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		type key struct{}
		calls := 0
		var cause error
		kill := make(chan struct{})
		own := errors.New("handler was killed")
		err := async.Scope(ctx, func(ctx context.Context) error {
			f := async.Execute(context.WithValue(ctx, key{}, "v"), func(ctx context.Context) (int, error) {
				<-kill // looks at no context
				return 0, own
			}, async.OnAbort(func(ctx context.Context, c error) error {
				calls++
				cause = c
				require.Equal(t, "v", ctx.Value(key{}))
				require.NoError(t, ctx.Err())
				close(kill)
				return errors.New("hook failed")
			}), async.Grace(time.Hour))
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, own)
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "hook failed")
			f.Cancel(nil)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, calls)
		var limit *async.TimeoutError
		require.ErrorAs(t, cause, &limit)
	})
}

func TestNoAbortHookForAHandlerThatHasReturnedOrItsOwnError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			hook := async.OnAbort(func(context.Context, error) error { t.Error("the hook was called"); return nil })
			f := async.Execute(ctx, func(ctx context.Context) (int, error) {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
				return 1, nil // what it started goes on
			}, hook)
			synctest.Wait()
			f.Cancel(nil)
			async.Execute(ctx, func(ctx context.Context) (int, error) { return 0, errHookBoom }, hook)
			return nil
		})
		require.ErrorIs(t, err, errHookBoom)
	})
}

func TestShieldOutlastsTheCancellationAndEndsOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			cancel()
			begin := time.Now()
			err := async.Shield(ctx, time.Second, func(ctx context.Context) error {
				require.NoError(t, ctx.Err())
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
				return nil
			})
			require.Equal(t, time.Second, time.Since(begin), "what it starts ends with it")
			return err
		}))
	})
}

// Failures and errors of hooks are one list.
func TestAHookThatReturnsTheFailureOfItsScopeIsNotListedBesideIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.Equal(t, errHookBoom, async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(_ context.Context, outcome error) error { return outcome })
			return errHookBoom
		}))
	})
}

// TestAnExitHookThatTakesTooLongIsATimeoutError of that hook, whatever it
// returns then.
func TestAnExitHookThatTakesTooLongIsATimeoutError(t *testing.T) {
	for name, tc := range map[string]struct {
		hook func(ctx context.Context) error
		late bool
	}{
		"in time":                     {sleeps(time.Second / 2), false},
		"says nothing":                {sleeps(time.Minute), true},
		"obeys its ctx":               {func(ctx context.Context) error { <-ctx.Done(); return nil }, true},
		"returns why it stopped":      {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, true},
		"fails":                       {func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, true},
		"panics":                      {func(ctx context.Context) error { <-ctx.Done(); panic(errPlanted) }, true},
		"what it has started obeys":   {func(ctx context.Context) error { async.Go(ctx, waitHook); return nil }, false},
		"stopped by something inside": {func(ctx context.Context) error { async.Go(ctx, failsHook); time.Sleep(time.Second / 2); return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(ctx context.Context, _ error) error { return tc.hook(ctx) })
					return nil
				}, async.HookTimeout(time.Second), async.Name("scope"))
				var limit *async.TimeoutError
				require.Equal(t, tc.late, errors.As(err, &limit), "%v", err)
				if tc.late {
					require.Equal(t, "exit hook of scope", limit.Task)
					require.Equal(t, time.Second, limit.Limit)
				}
			})
		})
	}
}

func waitHook(ctx context.Context) error  { <-ctx.Done(); return nil }
func failsHook(ctx context.Context) error { return errPlanted }

// TestDetachAfterLetsGoOfAnExitHookThatTakesTooLong, after which the others run.
func TestDetachAfterLetsGoOfAnExitHookThatTakesTooLong(t *testing.T) {
	for name, tc := range map[string]struct {
		detach, want time.Duration
	}{
		"when its time is up": {2 * time.Second, 5 * time.Second},
		"when it is late":     {7 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				begin := time.Now()
				var others []time.Duration
				note := func(context.Context, error) error { others = append(others, time.Since(begin)); return nil }
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, note)
					async.OnExit(ctx, func(context.Context, error) error { time.Sleep(time.Minute); return nil })
					async.OnExit(ctx, note)
					return errPlanted
				}, async.DetachAfter(tc.detach), async.Name("scope"))
				require.Equal(t, tc.want, time.Since(begin))
				var left *async.StragglerError
				require.ErrorAs(t, err, &left)
				require.Equal(t, "exit hook of scope", left.Left[0].Task)
				require.Contains(t, left.Left[0].Stack, "time.Sleep")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []time.Duration{0, time.Minute}, others)
				require.ErrorContains(t, check(), "exit hook of scope", "the root is told that it was late")
			})
		})
	}
}

// A plant is something of another package that takes time to end.
type plant struct {
	takes time.Duration
	how   bridge.Ending
	fails error
}

func (p *plant) ScopeEnds(how bridge.Ending, _ error) { p.how = how }
func (p *plant) Ended() bool                          { return false }
func (p *plant) Name() string                         { return "plant" }
func (p *plant) Join(context.Context) error           { growHere(p.takes); return p.fails }
func (p *plant) Left() []bridge.Left {
	return []bridge.Left{{Task: "leaf", Frame: "async_test.growHere("}, {Task: "flower"}}
}

//go:noinline
func growHere(d time.Duration) { time.Sleep(d) }

// TestWhatTakesTimeToEndIsJoined without a time limit, in turn with the exit
// hooks, and only DetachAfter lets a scope return before.
func TestWhatTakesTimeToEndIsJoined(t *testing.T) {
	run := func(ctx context.Context, p *plant, body error, opts ...async.ScopeOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			bridge.AtEnd(bridge.ScopeOf(ctx), p)
			return body
		}, append(opts, async.Name("scope"))...)
	}
	t.Run("joined", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			begin := time.Now()
			p := &plant{takes: time.Hour, fails: errors.New("withered")}
			require.Equal(t, p.fails, run(ctx, p, nil))
			require.Equal(t, time.Hour, time.Since(begin))
			require.Equal(t, bridge.Well, p.how)
		})
	})
	t.Run("let go", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			begin := time.Now()
			err := run(ctx, &plant{takes: time.Hour}, errPlanted, async.DetachAfter(time.Second))
			require.Equal(t, time.Second, time.Since(begin))
			require.ErrorIs(t, err, errPlanted)
			var left *async.StragglerError
			require.ErrorAs(t, err, &left)
			var names []string
			for _, s := range left.Left {
				names = append(names, s.Task)
			}
			require.Equal(t, []string{"end of plant of scope", "leaf", "flower"}, names)
			require.Contains(t, left.Left[1].Stack, "growHere")
			require.Equal(t, []string{"scope"}, asynctest.Live(ctx))
			time.Sleep(time.Hour)
			require.Empty(t, asynctest.Live(ctx))
		})
	})
	t.Run("Shutdown does not wait for it as for a hook", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			ctx, _ = asynctest.Root(ctx)
			_ = run(ctx, &plant{takes: time.Hour}, errPlanted, async.DetachAfter(time.Second))
			begin := time.Now()
			patient, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorContains(t, async.Shutdown(patient), "plant")
			require.Less(t, time.Since(begin), time.Minute)
			time.Sleep(time.Hour)
		})
	})
}

// endedContext returns the context of a scope that has ended, with a value.
func endedContext(t *testing.T, ctx context.Context, opts ...async.ScopeOption) (ended context.Context) {
	require.NoError(t, async.Scope(context.WithValue(ctx, contextKey{}, "value"), func(ctx context.Context) error {
		ended = ctx
		return nil
	}, opts...))
	return ended
}

// TestALateExitHookMayDoWhateverAnExitHookMay: it has a live context, and what
// it starts is joined before OnExit returns.
func TestALateExitHookMayDoWhateverAnExitHookMay(t *testing.T) {
	work := func(did *bool) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			if err := async.Sleep(ctx, time.Second); err != nil {
				return err
			}
			*did = ctx.Value(contextKey{}) == "value"
			return nil
		}
	}
	for name, hook := range map[string]func(ctx context.Context, work func(ctx context.Context) error) error{
		"itself": func(ctx context.Context, work func(ctx context.Context) error) error { return work(ctx) },
		"Scope": func(ctx context.Context, work func(ctx context.Context) error) error {
			return async.Scope(ctx, work)
		},
		"Shield": func(ctx context.Context, work func(ctx context.Context) error) error {
			return async.Shield(ctx, time.Minute, work)
		},
		"Go": func(ctx context.Context, work func(ctx context.Context) error) error {
			async.Go(ctx, work)
			return nil
		},
		"Execute": func(ctx context.Context, work func(ctx context.Context) error) error {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) { return 0, work(ctx) }).Await(ctx, 2*time.Second)
			return err
		},
		"Start, not awaited": func(ctx context.Context, work func(ctx context.Context) error) error {
			async.Start(ctx, work)
			return nil
		},
		"ForEach": func(ctx context.Context, work func(ctx context.Context) error) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2}), func(ctx context.Context, i int) error {
				if i == 1 {
					return nil
				}
				return work(ctx)
			})
		},
		"OnExit": func(ctx context.Context, work func(ctx context.Context) error) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return work(ctx) })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				ended := endedContext(t, ctx)
				cancel()
				begin := time.Now()
				did := false
				async.OnExit(ended, func(ctx context.Context, outcome error) error {
					require.Equal(t, async.ErrScopeEnded, outcome)
					require.NoError(t, ctx.Err())
					return hook(ctx, work(&did))
				})
				require.True(t, did)
				require.Equal(t, time.Second, time.Since(begin))
				require.Empty(t, asynctest.Live(ctx))
			})
		})
	}
}

func TestWhatALateExitHookComesTo(t *testing.T) {
	run := func(t *testing.T, ctx context.Context, f func(ctx context.Context) error) error {
		ctx, check := asynctest.Root(context.WithoutCancel(ctx))
		async.OnExit(endedContext(t, ctx), func(ctx context.Context, _ error) error { return f(ctx) })
		return check()
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, run(t, ctx, nothing))
		require.ErrorIs(t, run(t, ctx, func(context.Context) error { return errPlanted }), errPlanted, "its error goes to the root")
		require.ErrorIs(t, run(t, ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errPlanted })
			return nil
		}), errPlanted)
		func() {
			defer func() { require.Contains(t, describe(recover()), "planted") }()
			_ = run(t, ctx, func(context.Context) error { panic(errPlanted) })
			t.Error("its panic goes to the caller")
		}()
		gone := true
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = run(t, ctx, func(context.Context) error { runtime.Goexit(); return nil })
			gone = false
		}()
		<-done
		require.True(t, gone, "Goexit takes the caller's goroutine")
	})
}

func describe(value any) string {
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return errors.New("no error").Error()
}

// TestALateExitHookIsStoppedOnTime.
func TestALateExitHookIsStoppedOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(context.WithoutCancel(ctx))
		ended := endedContext(t, ctx, async.HookTimeout(time.Minute))
		begin := time.Now()
		async.OnExit(ended, func(ctx context.Context, _ error) error { <-ctx.Done(); return context.Cause(ctx) })
		require.Equal(t, time.Minute, time.Since(begin))
		var limit *async.TimeoutError
		require.ErrorAs(t, check(), &limit)
		require.Equal(t, time.Minute, limit.Limit)
	})
}

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
