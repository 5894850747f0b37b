package async_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var errHookBoom = errors.New("boom")

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

// TestExitHooksOfATaskWhosePanicDoesNotCountAreToldOfIt: what they would commit if all
// had gone well they do not.
func TestExitHooksOfATaskWhosePanicDoesNotCountAreToldOfIt(t *testing.T) {
	for name, opts := range map[string][]async.TaskOption{
		"once":      nil,
		"a run":     {async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 1})},
		"cancelled": {async.Timeout(-1)},
	} {
		for answer, want := range map[error]error{nil: nil, io.EOF: io.EOF} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var told error
					require.Equal(t, want, async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							async.OnExit(ctx, func(_ context.Context, outcome error) error { told = outcome; return nil })
							panic(errPlanted)
						}, opts...)
						return nil
					}, async.OnPanic(func(*async.PanicError) error { return answer })))
					var p *async.PanicError
					require.ErrorAs(t, told, &p)
					require.ErrorIs(t, told, errPlanted)
				})
			})
		}
	}
}
