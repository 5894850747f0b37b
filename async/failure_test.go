package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestWhoIsToldOfAFailure: an error that was given to nobody fails the scope
// at its end; what somebody was given or told does not. The task fails after a
// minute with an error of its own.
func TestWhoIsToldOfAFailure(t *testing.T) {
	own := errors.New("own")
	const early, late = time.Second, time.Hour // compared to the task
	for _, test := range []struct {
		way   string        // see waysToLook
		after bool          // the task has settled before
		limit time.Duration // of the wait: a timeout of Await, else a ctx
		told  error         // nil if nothing is told
		fails bool          // the scope, at its end
	}{
		{way: "nothing", fails: true},
		{way: "Done", after: true, fails: true},
		{way: "State", after: true, fails: true},
		{way: "Await", told: own},
		{way: "Await", limit: late, told: own},
		{way: "Await", after: true, limit: -1, told: own},
		{way: "Await", limit: early, told: context.DeadlineExceeded},
		{way: "Await", limit: -1, told: context.DeadlineExceeded},
		{way: "Await with a ctx", limit: early, told: context.DeadlineExceeded},
		{way: "Await in another task", told: own},
		{way: "AwaitAll", told: own},
		{way: "AwaitAll", limit: early, told: context.DeadlineExceeded},
		{way: "Wait", limit: late, told: own},
		{way: "Wait", limit: early, told: context.DeadlineExceeded, fails: true},
		{way: "Join", limit: early, told: own},
		{way: "Result", after: true, told: own},
		{way: "Result", fails: true},
		{way: "Cancel"},
		{way: "Cancel", after: true},
	} {
		t.Run(fmt.Sprint(test.way, ", settled: ", test.after, ", limit: ", test.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					f := async.Execute(ctx, stubborn(time.Minute, 0, own))
					if test.after {
						<-f.Done()
					}
					require.ErrorIs(t, waysToLook[test.way](ctx, f, test.limit), test.told)
					require.NoError(t, ctx.Err(), "a future's failure cancels nobody")
					return nil
				})
				if test.fails {
					require.ErrorIs(t, err, own)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// waysToLook is what may be done with a future. Each returns the error that it
// was told.
var waysToLook = map[string]func(ctx context.Context, f *async.Future[int], limit time.Duration) error{
	"nothing": func(context.Context, *async.Future[int], time.Duration) error { return nil },
	"Done":    func(_ context.Context, f *async.Future[int], _ time.Duration) error { <-f.Done(); return nil },
	"State":   func(_ context.Context, f *async.Future[int], _ time.Duration) error { f.State(); return nil },
	"Cancel":  func(_ context.Context, f *async.Future[int], _ time.Duration) error { f.Cancel(nil); return nil },
	"Result": func(_ context.Context, f *async.Future[int], _ time.Duration) error {
		_, err, _ := f.Result()
		return err
	},
	"Await": func(ctx context.Context, f *async.Future[int], limit time.Duration) error {
		return second(f.Await(ctx, limit))
	},
	"AwaitAll": func(ctx context.Context, f *async.Future[int], limit time.Duration) error {
		all := async.AwaitAll(ctx, limit, f, f)
		return errors.Join(all[0].Err, all[1].Err)
	},
	"Await with a ctx": withLimit(func(ctx context.Context, f *async.Future[int]) error { return second(f.Await(ctx, 0)) }),
	"Wait":             withLimit(func(ctx context.Context, f *async.Future[int]) error { return second(f.Wait(ctx)) }),
	"Join":             withLimit(func(ctx context.Context, f *async.Future[int]) error { return second(f.Join(ctx)) }),
	"Await in another task": func(ctx context.Context, f *async.Future[int], _ time.Duration) error {
		return second(async.Execute(ctx, func(ctx context.Context) (int, error) { return 0, second(f.Await(ctx, 0)) }).Await(ctx, 0))
	},
}

// withLimit gives wait a ctx that ends after limit.
func withLimit(wait func(ctx context.Context, f *async.Future[int]) error) func(context.Context, *async.Future[int], time.Duration) error {
	return func(ctx context.Context, f *async.Future[int], limit time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return wait(ctx, f)
	}
}

// TestAFailureAfterADerivedContextHasEndedIsStillTheScopes: that the derived
// context ends tells nobody of the failure.
func TestAFailureAfterADerivedContextHasEndedIsStillTheScopes(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("own")
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			async.Execute(brief, stubborn(time.Minute, 0, own))
			return nil
		}), own)
	})
}

// TestPanicsAndGoexitsAreTooLoudToBeToldAsATimeout: only being given them will
// do.
func TestPanicsAndGoexitsAreTooLoudToBeToldAsATimeout(t *testing.T) {
	boom := errors.New("boom")
	raise := func(ctx context.Context) (int, error) { untilStopped(ctx); panic(boom) }
	goexit := func(ctx context.Context) (int, error) { untilStopped(ctx); runtime.Goexit(); return 0, nil }
	for name, tell := range map[string]func(t *testing.T, ctx context.Context, f *async.Future[int]){
		"told by an Await": func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		},
		"told by AwaitAll": func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			require.ErrorIs(t, async.AwaitAll(ctx, time.Second, f)[0].Err, context.DeadlineExceeded)
		},
		"told by Cancel": func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			require.True(t, f.Cancel(errors.New("stop")))
		},
	} {
		t.Run("panic/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := panicFrom(func() {
					_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						tell(t, ctx, async.Execute(ctx, raise))
						return nil
					})
				})
				pe, ok := p.(*async.PanicError)
				require.True(t, ok, "%v", p)
				require.Equal(t, boom, pe.Value)
				require.ErrorIs(t, pe, boom)
			})
		})
		t.Run("Goexit/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					tell(t, ctx, async.Execute(ctx, goexit))
					return nil
				}), async.ErrGoexit)
			})
		})
		t.Run("given afterwards/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					f, g := async.Execute(ctx, raise), async.Execute(ctx, goexit)
					tell(t, ctx, f)
					tell(t, ctx, g)
					_, err := f.Wait(ctx)
					require.ErrorIs(t, err, boom)
					_, err = g.Wait(ctx)
					require.ErrorIs(t, err, async.ErrGoexit)
					return nil
				}))
			})
		})
	}
}

// TestAFailureIsToldToAWaiterOrToTheScopeNotToBoth: the waiter is outside, so
// the scope may end before it has been woken.
func TestAFailureIsToldToAWaiterOrToTheScopeNotToBoth(t *testing.T) {
	root := asynctest.Context(t)
	own := errors.New("own")
	for range 1000 {
		var waiter sync.WaitGroup
		var told error
		scope := async.Scope(root, func(ctx context.Context) error {
			fail := make(chan struct{})
			f := async.Execute(ctx, func(context.Context) (int, error) { <-fail; return 0, own })
			waiter.Go(func() { _, told = f.Wait(root) })
			close(fail)
			return nil
		})
		waiter.Wait()
		require.Equal(t, own, told)
		if scope != nil { // the waiter came after the scope's end
			require.ErrorIs(t, scope, own)
		}
	}
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			root := asynctest.Context(t)
			var told error
			require.NoError(t, async.Scope(root, func(ctx context.Context) error {
				f := async.Execute(ctx, stubborn(time.Second, 0, own))
				for range 20 {
					go func() { _, _ = f.Wait(root) }()
				}
				go func() { _, told = f.Wait(root) }()
				return nil
			}), "somebody was waiting, so somebody is told")
			synctest.Wait()
			require.Equal(t, own, told)
		})
	}
}

func TestUnclaimedFailuresAreListedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for i := range n {
				async.Execute(ctx, stubborn(time.Duration(i)*time.Second, 0, error(&awaitError{i})))
			}
			claimed := async.Execute(ctx, stubborn(time.Second/2, 0, errors.New("claimed")))
			_, err := claimed.Await(ctx, 0)
			require.Error(t, err)
			return nil
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Len(t, list.Errors, 32)
		require.Equal(t, n-32, list.Dropped)
		for i, err := range failuresOf(list) {
			require.Equal(t, &awaitError{i}, err)
		}
	})
}

// stoppedOf returns what was said beside a cancellation in a list.
func stoppedOf(err error) []error {
	list, _ := err.(*async.ScopeError)
	if list == nil {
		return nil
	}
	return list.Stopped
}

// failuresOf returns the errors of a list, and of one that nobody was given what the
// task has returned.
func failuresOf(list *async.ScopeError) []error {
	errs := slices.Clone(list.Errors)
	for i, err := range errs {
		if e, forgotten := err.(*async.UnawaitedError); forgotten {
			errs[i] = e.Err
		}
	}
	return errs
}

// TestTheRootIsToldOfAFailureThatNobodyWasGiven: when the future of a root
// task is collected.
func TestTheRootIsToldOfAFailureThatNobodyWasGiven(t *testing.T) {
	own := errors.New("own")
	for name, test := range map[string]struct {
		use  func(ctx context.Context, f *async.Future[int])
		told bool
	}{
		"nobody": {func(context.Context, *async.Future[int]) {}, true},
		"given":  {func(ctx context.Context, f *async.Future[int]) { _, _ = f.Await(ctx, 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, check := asynctest.Root(t.Context())
			func() {
				f := async.Execute(ctx, func(context.Context) (int, error) { return 0, own })
				<-f.Done()
				test.use(ctx, f)
			}()
			if test.told {
				var err error
				collected(func() bool { err = check(); return err != nil })
				require.ErrorIs(t, err, own)
				return
			}
			for range 3 {
				runtime.GC()
				require.NoError(t, check())
			}
		})
	}
}

// A callback fails a scope: at once, though all places under its Limit are taken.
func TestAScopeThatACallbackFailsIsCancelledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			assert.True(t, async.Fail(ctx, boom))
			assert.ErrorIs(t, context.Cause(ctx), boom)
			assert.True(t, async.Fail(ctx, boom), "it only repeats the cause")
			return nil
		}, async.Limit(1))
		assert.Equal(t, boom, err)
	})
}

// How it has ended is not changed by that.
func TestAScopeThatIsFailedAfterItWasCancelledListsTheFailureBesideTheCause(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	err := async.Scope(ctx, func(ctx context.Context) error {
		cancel()
		assert.True(t, async.Fail(ctx, boom))
		assert.NotErrorIs(t, context.Cause(ctx), boom)
		return nil
	})
	var scope *async.ScopeError
	assert.ErrorAs(t, err, &scope)
	assert.Equal(t, context.Canceled, scope.Cause)
	assert.Equal(t, []error{boom}, scope.Errors)
	assert.Equal(t, async.Stopped, async.EndingOf(err))
}

func TestAScopeThatHasEndedIsNotFailed(t *testing.T) {
	boom := errors.New("boom")
	var kept context.Context
	assert.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { kept = ctx; return nil }))
	assert.False(t, async.Fail(kept, boom))
	assert.NotErrorIs(t, context.Cause(kept), boom)
}

// Fail reports false once the scope has ended, however it ended and whatever the error.
func TestFailOnAnEndedScopeIsFalse(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		for name, end := range map[string]error{"well": nil, "failed": errFirst} {
			for _, with := range []error{errSecond, errFirst, context.Canceled} {
				var inner context.Context
				_ = async.Scope(ctx, func(ctx context.Context) error { inner = ctx; return end })
				if async.Fail(inner, with) {
					t.Errorf("scope ended %s: Fail with %v says true", name, with)
				}
			}
		}
	})
}

// Fail is as a Go task of the scope would fail it.
func TestFailIsAsAGoTask(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context, err error){
		"Go":   func(ctx context.Context, err error) { async.Go(ctx, func(context.Context) error { return err }) },
		"Fail": func(ctx context.Context, err error) { async.Fail(ctx, err) },
	} {
		t.Run("in a dismissed daemon/"+name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				if err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						<-ctx.Done()
						f(ctx, errors.New("http: Server closed"))
						return nil
					}, async.Daemon())
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		})
		t.Run("with a text/"+name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				ctx, cancel := context.WithCancel(ctx)
				err := async.Scope(ctx, func(ctx context.Context) error {
					cancel()
					f(ctx, fmt.Errorf("%s: %w", rows, ctx.Err()))
					return nil
				})
				e, _ := err.(*async.ScopeError)
				if e == nil || len(e.Stopped) != 1 {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestOnFailureAndOnPanicAreAskedWithoutTheSlot of the task that has failed: its
// handler has returned. So they may wait for what queues, at n = 1, too.
func TestOnFailureAndOnPanicAreAskedWithoutTheSlot(t *testing.T) {
	var scope context.Context
	another := func() error {
		_, err := async.Start(scope, nothing).Wait(context.Background())
		return err
	}
	for name, opts := range map[string][]async.TaskOption{
		"once":    nil,
		"Restart": {async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 2})},
		"On":      {async.On(executorFunc(func(task func()) error { go task(); return nil }))},
	} {
		for what, fails := range map[string]func(context.Context) error{
			"error": func(context.Context) error { return errPlanted },
			"panic": func(context.Context) error { panic(errPlanted) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					asked := 0
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
						scope = ctx
						async.Go(ctx, fails, opts...)
						return nil
					}, async.Limit(1),
						async.OnFailure(func(error) error { asked++; return another() }),
						async.OnPanic(func(*async.PanicError) error { asked++; return another() })))
					require.Equal(t, 1, asked)
				})
			})
		}
	}
}

func TestOnFailureDecidesWhetherAFailureIsOne(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		small, large := errors.New("small"), errors.New("large")
		var seen atomic.Int32 // the hook is called by the goroutines of the tasks
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return small })
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return large })
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // an echo: not asked about
			return nil
		}, async.OnFailure(func(err error) error {
			seen.Add(1)
			if errors.Is(err, small) {
				return nil
			}
			return err
		}))
		require.Equal(t, large, err)
		require.EqualValues(t, 2, seen.Load())
	})
}

func TestAScopeKeepsTheFirst32ErrorsAndACount(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for i := range 100 {
				async.Go(ctx, func(context.Context) error {
					time.Sleep(time.Duration(i+1) * time.Second) // looks at no context
					return fmt.Errorf("failure %d", i)
				})
			}
			return nil
		})
		var all *async.ScopeError
		require.ErrorAs(t, err, &all)
		require.Len(t, all.Errors, 32)
		require.Equal(t, 68, all.Dropped)
		require.EqualError(t, all.Errors[0], "failure 0", "the one that decided")
	})
}

// twoErrors is a user's error that embeds one of ours and wraps another error, too.
type twoErrors struct {
	*async.RestartError
	other error
}

func (e twoErrors) Error() string   { return e.other.Error() }
func (e twoErrors) Unwrap() []error { return []error{e.RestartError, e.other} }

func TestAnErrorThatEmbedsOneOfOursIsTheUsers(t *testing.T) {
	full := errors.New("disk full")
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			failed := make(chan struct{})
			pause := func(int) time.Duration { close(failed); return time.Hour }
			stopped := async.Start(context.WithoutCancel(ctx), func(context.Context) error { return errors.New("once") },
				async.Restart(async.RestartPolicy{Interval: pause}))
			<-failed
			stopped.Cancel(context.Cause(ctx))
			_, err := stopped.Join(ctx)
			var restart *async.RestartError
			assert.ErrorAs(t, err, &restart)
			return twoErrors{restart, full}
		})
		return errors.New("first")
	})
	assert.ErrorIs(t, err, full, "it says more than that it was stopped, so it is a failure")
}
