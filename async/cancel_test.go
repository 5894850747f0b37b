package async_test

import (
	"context"
	"errors"
	"slices"
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
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx, async.Daemon())
				return nil
			}))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, async.ErrDismissed, context.Canceled, false},
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

// A task's context is a child of the ctx that it was started with, and of
// nothing else.
func TestCancellationFollowsTheContextATaskWasStartedWith(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		only := errors.New("only derived")
		err := async.Scope(ctx, func(ctx context.Context) error {
			derived, cancel := context.WithCancelCause(ctx)
			until := func(want error) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					<-ctx.Done()
					require.Equal(t, want, context.Cause(ctx))
					return nil
				}
			}
			async.Go(derived, until(only))
			async.Go(context.WithValue(derived, contextKey{}, 1), until(only))
			async.Go(context.WithValue(ctx, contextKey{}, 1), until(errContext))
			async.Go(ctx, until(errContext))
			timed, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), 5*time.Second, only)
			defer stop()
			async.Go(timed, until(only))
			async.Go(context.WithoutCancel(derived), func(ctx context.Context) error {
				time.Sleep(time.Hour)
				require.NoError(t, ctx.Err())
				require.Nil(t, context.Cause(ctx))
				return nil
			})
			time.Sleep(time.Second)
			cancel(only)
			time.Sleep(time.Second)
			async.Go(ctx, func(context.Context) error { return errContext })
			time.Sleep(time.Minute) // so that stop comes too late
			return nil
		})
		require.Equal(t, errContext, err)
	})
}

// A task that is owned but not cancelled with its scope is cancelled by what acts on
// it alone.
func TestUnderWithoutCancelOnlyWhatActsOnATaskCancelsIt(t *testing.T) {
	mine := errors.New("mine")
	for name, test := range map[string]struct {
		opts  []async.TaskOption
		act   func(ctx context.Context, f *async.Future[struct{}])
		cause error
	}{
		"its timeout": {[]async.TaskOption{async.Timeout(2 * time.Second)}, func(context.Context, *async.Future[struct{}]) {}, context.DeadlineExceeded},
		"Cancel":      {nil, func(_ context.Context, f *async.Future[struct{}]) { f.Cancel(mine) }, mine},
		"an expired Await": {nil, func(ctx context.Context, f *async.Future[struct{}]) {
			_, _ = f.Await(context.WithoutCancel(ctx), time.Second)
		}, context.DeadlineExceeded},
		"an Await whose context is done": {nil, func(ctx context.Context, f *async.Future[struct{}]) { _, _ = f.Await(ctx, time.Hour) }, errContext},
		"its dismissal":                  {[]async.TaskOption{async.Daemon()}, func(context.Context, *async.Future[struct{}]) {}, async.ErrDismissed},
		"its heartbeat":                  {[]async.TaskOption{async.Heartbeat(time.Second)}, func(context.Context, *async.Future[struct{}]) {}, async.ErrNoBeat},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					f := async.Start(context.WithoutCancel(ctx), func(ctx context.Context) error {
						below := async.Start(ctx, func(ctx context.Context) error {
							<-ctx.Done()
							require.ErrorIs(t, context.Cause(ctx), test.cause)
							return nil
						})
						<-ctx.Done()
						require.ErrorIs(t, context.Cause(ctx), test.cause)
						_, _ = below.Wait(context.WithoutCancel(ctx))
						return nil
					}, test.opts...)
					async.Go(ctx, func(context.Context) error { return errContext })
					<-ctx.Done()
					synctest.Wait()
					require.True(t, f.IsRunning())
					test.act(ctx, f)
					return nil
				})
			})
		})
	}
}

func TestShutdownCancelsWhateverContextATaskWasStartedWith(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var ended atomic.Int32
		deaf := func(ctx context.Context, inside func(context.Context)) {
			async.Start(context.WithoutCancel(ctx), func(ctx context.Context) error {
				inside(ctx)
				<-ctx.Done()
				require.Equal(t, async.ErrShutdown, context.Cause(ctx))
				ended.Add(1)
				return nil
			})
		}
		deaf(ctx, func(ctx context.Context) {
			deaf(ctx, func(ctx context.Context) { deaf(ctx, func(context.Context) {}) })
		})
		late, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.NoError(t, async.Shutdown(late))
		require.EqualValues(t, 3, ended.Load())
	})
}

// Code that cleans up takes context.WithoutCancel(ctx). It has to work the same
// when it uses the package inside.
func TestCleanUpUnderWithoutCancelRunsInACancelledScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var ran atomic.Int32
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errContext })
			<-ctx.Done()
			cleanUp := context.WithoutCancel(ctx)
			item := func(ctx context.Context, n int) (int, error) { ran.Add(1); return n, ctx.Err() }
			items := []int{1, 2, 3}
			require.NoError(t, async.ForEach(cleanUp, slices.Values(items), func(ctx context.Context, n int) error {
				_, err := item(ctx, n)
				return err
			}, async.Limit(2)))
			for n, err := range async.Map(cleanUp, slices.Values(items), item) {
				require.NoError(t, err)
				require.NotZero(t, n)
			}
			results, err := async.ForkJoin(cleanUp, items, item, async.Limit(2)).Await(cleanUp, time.Second)
			require.NoError(t, err)
			require.Len(t, results, 3)
			_, err = async.All(cleanUp, answer, answer).Await(cleanUp, time.Second)
			require.NoError(t, err)
			v, err := async.Execute(cleanUp, func(ctx context.Context) (int, error) { return 1, ctx.Err() }).Await(cleanUp, time.Second)
			require.NoError(t, err)
			require.Equal(t, 1, v)
			require.NoError(t, async.Sleep(cleanUp, time.Second))
			return async.Scope(cleanUp, func(ctx context.Context) error { return ctx.Err() })
		})
		require.ErrorIs(t, err, errContext)
		require.EqualValues(t, 9, ran.Load())
	})
}

func TestAQueuedTaskUnderWithoutCancelRunsAfterItsScopeWasCancelled(t *testing.T) {
	ran := false
	_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		gate := make(chan struct{})
		async.Start(ctx, func(context.Context) error { <-gate; return nil })
		async.Start(context.WithoutCancel(ctx), func(ctx context.Context) error { ran = ctx.Err() == nil; return nil })
		async.Go(ctx, func(context.Context) error { return errContext })
		close(gate)
		return errors.New("stop")
	}, async.Limit(1))
	require.True(t, ran)
}

// Everything below a task sees at once that it was cancelled, and for what, on
// the goroutine that has cancelled it; what is around it does not.
func TestEverythingBelowSeesACancellationAtOnce(t *testing.T) {
	const depth, middle = 40, 17
	for name, look := range map[string]func(context.Context){
		"never asked before": func(context.Context) {},
		"asked for Done":     func(ctx context.Context) { _ = ctx.Done() },
		"asked for Err":      func(ctx context.Context) { require.NoError(t, ctx.Err()) },
	} {
		for wrapped, wrap := range map[string]func(context.Context) (context.Context, func()){
			"own context": func(ctx context.Context) (context.Context, func()) { return ctx, func() {} },
			"WithValue": func(ctx context.Context) (context.Context, func()) {
				return context.WithValue(ctx, contextKey2{}, 1), func() {}
			},
			"WithTimeout": func(ctx context.Context) (context.Context, func()) {
				return context.WithTimeout(ctx, time.Hour)
			},
		} {
			t.Run(name+"/"+wrapped, func(t *testing.T) {
				var levels []context.Context
				var f *async.Future[struct{}]
				started := make(chan struct{})
				var down func(ctx context.Context) error
				down = func(ctx context.Context) error {
					levels = append(levels, ctx)
					look(ctx)
					if len(levels) == depth {
						<-started
						f.Cancel(errContext)
						for i, ctx := range levels {
							if i < middle {
								require.NoError(t, ctx.Err(), i)
								continue
							}
							require.Equal(t, context.Canceled, ctx.Err(), i)
							require.Equal(t, errContext, context.Cause(ctx), i)
							below, cancel := context.WithCancel(ctx)
							require.Error(t, below.Err())
							require.Equal(t, errContext, context.Cause(below))
							cancel()
						}
						return nil
					}
					next, cancel := wrap(ctx)
					defer cancel()
					if len(levels) == middle {
						f = async.Start(next, down)
						close(started)
						_, _ = f.Wait(ctx)
						return nil
					}
					return async.Scope(next, down)
				}
				require.NoError(t, async.Scope(asynctest.Context(t), down))
			})
		}
	}
}

func TestAScopeUnderWithoutCancelIsFreeFromItsContextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancel(asynctest.Context(t))
		require.NoError(t, async.Scope(context.WithoutCancel(outer), func(ctx context.Context) error {
			cancel()
			synctest.Wait()
			_, err := async.Start(ctx, func(ctx context.Context) error { return ctx.Err() }).Await(ctx, 0)
			return err
		}))
	})
}
