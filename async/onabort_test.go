package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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

func TestAwaitDoesNotWaitForTheAbortHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f := async.Execute(ctx, obedient(0, 7, nil), async.OnAbort(func(context.Context, error) error {
				time.Sleep(3 * time.Second)
				return nil
			}))
			_, err := f.Await(ctx, time.Second)
			require.Error(t, err)
			tookAbout(t, time.Second, start)
			return nil
		}))
		tookAbout(t, 4*time.Second, start) // the scope does
	})
}

// TestTheAbortHookIsCalledInARun: once, and not between runs.
func TestTheAbortHookIsCalledInARun(t *testing.T) {
	for name, stop := range stops {
		for when, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
			t.Run(name+"/"+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					own, cancel := context.WithCancelCause(ctx)
					var hooks atomic.Int32
					f := async.Start(own, func(ctx context.Context) error {
						_ = async.Sleep(ctx, lasts)
						return errRun
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}), async.OnAbort(func(_ context.Context, cause error) error {
						require.Equal(t, errPlanted, cause)
						hooks.Add(1)
						return nil
					}))
					time.Sleep(30 * time.Second)
					stop(f, cancel)
					_, err := f.Join(ctx)
					require.ErrorIs(t, err, errPlanted)
					want := int32(0)
					if lasts > 0 {
						want = 1
					}
					require.Equal(t, want, hooks.Load())
				})
			})
		}
	}
}
