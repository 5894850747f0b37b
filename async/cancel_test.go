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

// A victim is a task that waits to be told to stop and notes what it is told.
type victim struct {
	future     *async.Future[int]
	err, cause error // as its handler saw them
	hookCause  error // as its abort hook got it
	hooks      atomic.Int32
	hookFirst  atomic.Bool // the hook ran before the context was done
	own        *awaitError
}

// newVictim starts a victim with ctx. Its handler ends with an error of its own.
func newVictim(ctx context.Context, opts ...async.TaskOption) *victim {
	v := &victim{own: &awaitError{99}}
	running := make(chan context.Context, 1)
	hook := func(_ context.Context, cause error) error {
		v.hooks.Add(1)
		v.hookCause = cause
		v.hookFirst.Store((<-running).Err() == nil)
		return nil
	}
	v.future = async.Execute(ctx, func(ctx context.Context) (int, error) {
		running <- ctx
		untilStopped(ctx)
		v.err, v.cause = ctx.Err(), context.Cause(ctx)
		return 0, v.own
	}, append(opts, async.OnAbort(hook), async.Name("victim"))...)
	synctest.Wait() // its handler runs
	return v
}

var (
	errCancelWhy  = errors.New("cancelled on purpose")
	errCancelBoom = errors.New("sibling failed")
)

// TestTheCauseOfACancellationReachesHandlerHookAndCaller, wherever it comes from.
func TestTheCauseOfACancellationReachesHandlerHookAndCaller(t *testing.T) {
	type result struct {
		victim *victim
		caller error // what the one who called was told, nil if nobody was
	}
	for name, test := range map[string]struct {
		run       func(t *testing.T, ctx context.Context) result
		cause     error // matched with errors.Is by handler, hook and caller
		err       error // ctx.Err in the handler
		sameError bool  // the caller is told the very cause
	}{
		"the parent": {func(t *testing.T, ctx context.Context) (r result) {
			ctx, cancel := context.WithCancelCause(ctx)
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				cancel(errCancelWhy)
				return nil
			})
			require.ErrorIs(t, r.caller, context.Canceled)
			return r
		}, errCancelWhy, context.Canceled, false},
		"the parent's deadline": {func(t *testing.T, ctx context.Context) (r result) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, errCancelWhy)
			defer cancel()
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				return nil
			})
			require.ErrorIs(t, r.caller, context.DeadlineExceeded)
			return r
		}, errCancelWhy, context.DeadlineExceeded, false},
		"the parent, three scopes up": {func(t *testing.T, ctx context.Context) (r result) {
			ctx, cancel := context.WithCancelCause(ctx)
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						return async.Scope(ctx, func(ctx context.Context) error {
							r.victim = newVictim(ctx)
							cancel(errCancelWhy)
							return nil
						})
					})
					return nil
				})
			})
			return r
		}, errCancelWhy, context.Canceled, false},
		"a sibling": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				async.Go(ctx, func(context.Context) error { return errCancelBoom })
				return nil
			})
			return r
		}, errCancelBoom, context.Canceled, false},
		"a sibling's panic": {func(t *testing.T, ctx context.Context) (r result) {
			p := panicFrom(func() {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					r.victim = newVictim(ctx)
					async.Go(ctx, func(context.Context) error { panic(errCancelBoom) })
					return nil
				})
			})
			r.caller, _ = p.(error)
			return r
		}, errCancelBoom, context.Canceled, false},
		"the body's error": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				return errCancelBoom
			})
			return r
		}, errCancelBoom, context.Canceled, false},
		"the scope's timeout": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				return nil
			}, async.Timeout(time.Second))
			var te *async.TimeoutError
			require.ErrorAs(t, r.caller, &te)
			require.Equal(t, time.Second, te.Limit)
			return r
		}, context.DeadlineExceeded, context.DeadlineExceeded, false},
		"the task's timeout": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx, async.Timeout(time.Second))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, context.DeadlineExceeded, context.DeadlineExceeded, false},
		"an Await's limit": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			_, r.caller = r.victim.future.Await(ctx, time.Second)
			return r
		}, context.DeadlineExceeded, context.Canceled, true},
		"an Await's context": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			brief, cancel := context.WithCancelCause(ctx)
			cancel(errCancelWhy)
			_, r.caller = r.victim.future.Await(brief, 0)
			return r
		}, errCancelWhy, context.Canceled, false},
		"a derived context, cancelled": {func(t *testing.T, ctx context.Context) (r result) {
			derived, cancel := context.WithCancelCause(ctx)
			r.victim = newVictim(derived)
			cancel(errCancelWhy)
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"a derived context, timed out": {func(t *testing.T, ctx context.Context) (r result) {
			derived, cancel := context.WithTimeoutCause(ctx, time.Second, errCancelWhy)
			defer cancel()
			r.victim = newVictim(derived)
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.DeadlineExceeded, false},
		"a context derived twice": {func(t *testing.T, ctx context.Context) (r result) {
			derived, cancel := context.WithCancelCause(ctx)
			r.victim = newVictim(context.WithValue(derived, cycleKey{}, 1))
			cancel(errCancelWhy)
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"Cancel": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			require.True(t, r.victim.future.Cancel(errCancelWhy))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"Cancel without a cause": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			require.True(t, r.victim.future.Cancel(nil))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, context.Canceled, context.Canceled, false},
		"Cancel of the task around it": {func(t *testing.T, ctx context.Context) (r result) {
			around := async.Execute(ctx, func(ctx context.Context) (int, error) {
				r.victim = newVictim(ctx)
				_, err := r.victim.future.Wait(context.WithoutCancel(ctx))
				return 0, err
			})
			time.Sleep(time.Second)
			require.True(t, around.Cancel(errCancelWhy))
			_, r.caller = around.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"an Await of the task around it": {func(t *testing.T, ctx context.Context) (r result) {
			around := async.Execute(ctx, func(ctx context.Context) (int, error) {
				r.victim = newVictim(ctx)
				return 0, nil
			})
			_, r.caller = around.Await(ctx, time.Second)
			require.Error(t, r.caller)
			_, err := around.Wait(ctx)
			require.ErrorIs(t, err, r.caller)
			return r
		}, context.DeadlineExceeded, context.Canceled, true},
		"a daemon's dismissal": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx, async.Daemon())
				return nil
			})
			return r
		}, async.ErrScopeDone, context.Canceled, false},
		"Shutdown": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			over, cancel := context.WithCancel(ctx)
			cancel()
			require.NoError(t, async.Shutdown(over))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, async.ErrShutdown, context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				r := test.run(t, ctx)
				v := r.victim
				require.ErrorIs(t, r.caller, test.cause)
				_, outcome := v.future.Wait(ctx)
				require.ErrorIs(t, v.cause, test.cause)
				require.Equal(t, test.err, v.err)
				require.True(t, v.hookCause == v.cause, "hook: %v, handler: %v", v.hookCause, v.cause)
				require.EqualValues(t, 1, v.hooks.Load())
				require.False(t, v.hookFirst.Load(), "the hook is called after the context was cancelled")
				if test.sameError {
					require.True(t, r.caller == v.cause)
				}
				// Result and cause are both kept.
				var own *awaitError
				require.ErrorAs(t, outcome, &own)
				require.Same(t, v.own, own)
				require.ErrorIs(t, outcome, v.cause)
			})
		})
	}
}

func TestTheFirstCauseWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		v := newVictim(ctx)
		_, err := v.future.Await(ctx, time.Second)
		v.future.Cancel(errCancelBoom)
		cancel(errCancelWhy)
		_, _ = v.future.Wait(context.WithoutCancel(ctx))
		require.True(t, v.cause == err)
		require.True(t, v.hookCause == err)
		require.EqualValues(t, 1, v.hooks.Load())
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

func TestAWaiterIsToldWhenItsOwnScopeIsCancelled(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[int]) error{
		"Await":    func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, 0); return err },
		"Wait":     func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(ctx); return err },
		"AwaitAll": func(ctx context.Context, f *async.Future[int]) error { return async.AwaitAll(ctx, time.Hour, f)[0].Err },
		"derived":  func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(cycleValue(ctx)); return err },
		"derived cancel": func(ctx context.Context, f *async.Future[int]) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := f.Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				f := async.Execute(ctx, stubborn(time.Hour, 1, nil))
				start := time.Now()
				told := make([]error, 20)
				require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
					var bare sync.WaitGroup
					for i := range 10 {
						async.Go(ctx, func(ctx context.Context) error { // each its own context
							told[i] = wait(ctx, f)
							return nil
						})
						bare.Go(func() { told[10+i] = wait(ctx, f) }) // many on one
					}
					time.Sleep(time.Second)
					async.Go(ctx, func(context.Context) error { return errCancelBoom })
					bare.Wait()
					return nil
				}), errCancelBoom)
				tookAbout(t, time.Second, start)
				for _, err := range told {
					require.ErrorIs(t, err, context.Canceled)
					require.ErrorIs(t, err, errCancelBoom)
				}
				_, err := f.Wait(ctx)
				require.NoError(t, err)
			})
		})
	}
}

// TestNoCancellationIsMissed: a scope is cancelled while tasks in it start,
// look at their contexts for the first time, and wait.
func TestNoCancellationIsMissedByALateLook(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 300 {
		err := async.Scope(root, func(ctx context.Context) error {
			for j := range 8 {
				async.Go(ctx, func(ctx context.Context) error {
					switch (i + j) % 5 {
					case 0:
						<-ctx.Done()
					case 1:
						derived, cancel := context.WithCancel(ctx)
						defer cancel()
						<-derived.Done()
						require.ErrorIs(t, context.Cause(derived), errCancelBoom)
					case 2:
						never, _ := async.NewPromise[int](root)
						_, err := never.Wait(ctx)
						require.ErrorIs(t, err, errCancelBoom)
					case 3:
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
					case 4:
						called := make(chan struct{})
						context.AfterFunc(ctx, func() { close(called) })
						<-called
					}
					return nil
				})
			}
			async.Go(ctx, func(context.Context) error { return errCancelBoom })
			return nil
		})
		require.ErrorIs(t, err, errCancelBoom)
	}
}
