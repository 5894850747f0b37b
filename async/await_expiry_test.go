package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAScopeJoinsWhatItsAwaitGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ended := false
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			_, err := async.Execute(ctx, func(context.Context) (int, error) {
				time.Sleep(time.Hour)
				ended = true
				return 0, errors.New("after the fact")
			}).Await(ctx, time.Second)
			require.Error(t, err)
			return nil
		})
		require.NoError(t, err, "the owner was told: no failure of the scope")
		require.True(t, ended)
		tookAbout(t, time.Hour, start)
	})
}

func TestFiftyWaitersThatExpireTogetherAbortOnce(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var hooks, fromHook atomic.Int32
		var cause error
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			cause = context.Cause(ctx)
			time.Sleep(time.Minute)
			return 5, nil
		}, async.OnAbort(func(_ context.Context, cause error) error {
			hooks.Add(1)
			if _, ok := cause.(*async.TimeoutError); ok {
				fromHook.Add(1)
			}
			return nil
		}))
		start := time.Now()
		errs := make([]error, 50)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = f.Await(ctx, time.Second) })
		}
		all.Wait()
		tookAbout(t, time.Second, start)
		v, err := f.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 5, v)
		require.EqualValues(t, 1, hooks.Load())
		require.EqualValues(t, 1, fromHook.Load())

		mine := 0
		for _, err := range errs {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if err == cause {
				mine++
			}
		}
		require.Equal(t, 1, mine, "the first to expire aborted for all, and identity tells who it was")
	})
}

func TestTheFirstToExpireAbortsForAll(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			return 0, context.Cause(ctx)
		})
		start := time.Now()
		var patient error
		var done sync.WaitGroup
		done.Go(func() { _, patient = f.Await(ctx, time.Hour) })
		_, hasty := f.Await(ctx, time.Second)
		require.Error(t, hasty)
		done.Wait()
		tookAbout(t, time.Second, start)
		require.ErrorIs(t, patient, hasty, "the patient one is given the real outcome: aborted by the other")
	})
}

func TestAwaitingAgainAfterATimeoutGivesTheRealOutcome(t *testing.T) {
	own := &awaitError{3}
	for name, test := range map[string]struct {
		handler func(context.Context) (int, error)
		check   func(t *testing.T, v int, err error, told error)
	}{
		"a value": {stubborn(time.Minute, 7, nil), func(t *testing.T, v int, err, _ error) {
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}},
		"the handler's own error and the cause": {stubborn(time.Minute, 0, error(own)), func(t *testing.T, _ int, err, told error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.Same(t, own, mine)
			require.ErrorIs(t, err, told)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}},
		"a wrapped error of its own": {stubborn(time.Minute, 0, fmt.Errorf("wrapped: %w", own)), func(t *testing.T, _ int, err, told error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.ErrorIs(t, err, told)
		}},
		"an echo of the context": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			return 0, ctx.Err()
		}, func(t *testing.T, _ int, err, told error) {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, told)
		}},
		"an echo of the cause, wrapped": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			return 0, fmt.Errorf("fetching: %w", context.Cause(ctx))
		}, func(t *testing.T, _ int, err, told error) {
			require.ErrorIs(t, err, told)
			require.ErrorContains(t, err, "fetching")
		}},
		"a panic": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			panic("late")
		}, func(t *testing.T, _ int, err, _ error) {
			var p *async.PanicError
			require.ErrorAs(t, err, &p)
			require.Equal(t, "late", p.Value)
		}},
		"Goexit": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			runtime.Goexit()
			return 0, nil
		}, func(t *testing.T, _ int, err, told error) {
			require.ErrorIs(t, err, async.ErrGoexit)
			require.ErrorIs(t, err, told)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				f := async.Execute(ctx, test.handler)
				_, told := f.Await(ctx, time.Second)
				require.ErrorIs(t, told, context.DeadlineExceeded)
				for range 3 {
					v, err := f.Await(ctx, 0)
					test.check(t, v, err, told)
					v, err = f.Wait(ctx)
					test.check(t, v, err, told)
					r := async.AwaitAll(ctx, 0, f)
					test.check(t, r[0].Value, r[0].Err, told)
					v, err, ok := f.Result()
					require.True(t, ok)
					test.check(t, v, err, told)
				}
			})
		})
	}
}

func TestATimeoutErrorSaysWhoseLimitItWas(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var cause error
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			cause = context.Cause(ctx)
			require.Equal(t, context.Canceled, ctx.Err())
			return 0, ctx.Err()
		}, async.Name("fetch"))
		_, err := f.Await(ctx, 1500*time.Millisecond)
		_, _ = f.Wait(ctx)

		te, ok := err.(*async.TimeoutError)
		require.True(t, ok, "%T", err)
		require.Equal(t, "fetch", te.Task)
		require.Equal(t, 1500*time.Millisecond, te.Limit)
		require.InDelta(t, 1500*time.Millisecond, te.Waited, float64(time.Microsecond))
		for _, part := range []string{"context deadline exceeded", "fetch", "1.5s"} {
			require.ErrorContains(t, err, part)
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.True(t, te.Timeout())
		require.True(t, os.IsTimeout(err))
		var ne net.Error
		if errors.As(err, &ne) {
			require.True(t, ne.Timeout())
		}
		require.True(t, cause == err, "the cause in the handler is the very error that Await returned")
	})
}

// TestATimeoutErrorSaysHowLongWasWaitedThoughTheContextEndsToo at that instant.
func TestATimeoutErrorSaysHowLongWasWaitedThoughTheContextEndsToo(t *testing.T) {
	for range 2000 / raceFactor {
		inBubble(t, func(_ *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(outer context.Context) error {
				f := async.Execute(outer, obedient(0, 0, context.Canceled))
				ctx, cancel := context.WithTimeout(outer, time.Second)
				defer cancel()
				_, err := f.Await(ctx, time.Second)
				if expired := (*async.TimeoutError)(nil); errors.As(err, &expired) {
					require.GreaterOrEqual(t, expired.Waited, time.Second)
				}
				return nil
			})
		})
	}
}

func TestATimeoutOfSomethingInsideIsNotMyTimeout(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var inner error
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			_, inner = async.Execute(ctx, obedient(0, 1, nil)).Await(ctx, time.Second)
			return 0, fmt.Errorf("inside: %w", inner)
		})
		_, err := f.Await(ctx, time.Hour)
		require.ErrorIs(t, err, inner)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, err != inner)
	})
}

func TestTheTimeoutOfATaskIsItsOwn(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, start.Add(time.Second), deadline)
			untilStopped(ctx)
			require.Equal(t, context.DeadlineExceeded, ctx.Err())
			return 0, context.Cause(ctx)
		}, async.Timeout(time.Second), async.Name("brief"))
		_, err := f.Await(ctx, 0)
		tookAbout(t, time.Second, start)
		var te *async.TimeoutError
		require.ErrorAs(t, err, &te)
		require.Equal(t, "brief", te.Task)
		require.Equal(t, time.Second, te.Limit)
	})
}

func TestAwaitUnderAContextThatEnds(t *testing.T) {
	why := errors.New("the user left")
	for name, test := range map[string]struct {
		derive func(context.Context) (context.Context, func())
		match  []error
	}{
		"cancelled": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, []error{context.Canceled}},
		"cancelled with a cause": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		}, []error{context.Canceled, why}},
		"a deadline": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			return ctx, func() {}
		}, []error{context.DeadlineExceeded}},
		"a deadline with a cause": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, why)
			time.AfterFunc(time.Hour, cancel)
			return ctx, func() {}
		}, []error{context.DeadlineExceeded, why}},
	} {
		for _, when := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprint(name, " after ", when), func(t *testing.T) {
				awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
					start := time.Now()
					derived, end := test.derive(ctx)
					if when == 0 {
						end()
					} else {
						time.AfterFunc(when, end)
					}
					took := when
					if _, ok := derived.Deadline(); ok {
						took = time.Second
					}
					var cause, werr, cerr error
					f := async.Execute(ctx, func(ctx context.Context) (int, error) {
						untilStopped(ctx)
						cause, cerr = context.Cause(ctx), ctx.Err()
						return 7, nil
					})
					// Wait first: it leaves the task alone.
					_, werr = f.Wait(derived)
					tookAbout(t, took, start)
					for _, want := range test.match {
						require.ErrorIs(t, werr, want)
					}
					synctest.Wait()
					require.Equal(t, async.StateRunning, f.State())

					v, err := f.Await(derived, 0)
					require.Zero(t, v)
					for _, want := range test.match {
						require.ErrorIs(t, err, want)
					}
					v, err = f.Await(ctx, 0)
					require.NoError(t, err)
					require.Equal(t, 7, v)
					require.True(t, cause == context.Cause(derived), "the handler's cause is that of the waiter's ctx: %v", cause)
					require.Equal(t, context.Canceled, cerr, "its Deadline said nothing of the waiter's")
				})
			})
		}
	}
}

// TestTheCauseOfAWaitsContextReachesTheTaskAsItIs though it is what another
// wait returned that was cut short.
func TestTheCauseOfAWaitsContextReachesTheTaskAsItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(outer context.Context) error {
			var got, want error
			f := async.Execute(outer, func(ctx context.Context) (int, error) { <-ctx.Done(); got = context.Cause(ctx); return 0, nil })
			_ = async.Scope(outer, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					mine, cancel := context.WithCancelCause(ctx)
					never, _ := async.NewPromise[int](ctx)
					time.AfterFunc(time.Second, func() { cancel(errPlanted) })
					_, err := never.Await(mine, 0)
					return err
				})
				_, _ = f.Await(ctx, 0)
				want = context.Cause(ctx)
				return nil
			})
			synctest.Wait()
			require.ErrorIs(t, want, errPlanted)
			require.Same(t, want, got)
			return nil
		})
	})
}

func TestACauseThatMentionsACycleAbortsLikeAnyOther(t *testing.T) {
	for _, cause := range []error{errPlanted, fmt.Errorf("%w: a -> b", async.ErrAwaitCycle)} {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(outer context.Context) error {
				f := async.Execute(outer, obedient(0, 0, nil))
				ctx, cancel := context.WithCancelCause(outer)
				cancel(cause)
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, cause)
				require.Contains(t, []async.State{async.StateAborting, async.StateDone}, f.State())
				f.Cancel(nil)
				return nil
			})
		})
	}
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

// TestCancelSaysWhoWasFirst although its task, woken by it, may end before it
// returns.
func TestCancelSaysWhoWasFirst(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 20_000 / raceFactor {
		begun := make(chan struct{})
		f := async.Start(ctx, func(ctx context.Context) error {
			done := ctx.Done()
			close(begun)
			<-done
			return ctx.Err()
		})
		<-begun
		require.True(t, f.Cancel(errCancelBoom))
		require.False(t, f.Cancel(errCancelWhy))
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, errCancelBoom)
	}
	for range 20_000 / raceFactor {
		derived, cancel := context.WithCancelCause(ctx)
		f := async.Start(derived, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		cancel(errCancelWhy)
		require.False(t, f.Cancel(errCancelBoom))
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, errCancelWhy)
	}
}

// TestAWaitThatIsOverKeepsNoFuture, though the scope that has waited goes on.
func TestAWaitThatIsOverKeepsNoFuture(t *testing.T) {
	type value [1 << 20]byte
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[*value]) (*value, error){
		"Wait":  func(ctx context.Context, f *async.Future[*value]) (*value, error) { return f.Wait(ctx) },
		"Join":  func(ctx context.Context, f *async.Future[*value]) (*value, error) { return f.Join(ctx) },
		"Await": func(ctx context.Context, f *async.Future[*value]) (*value, error) { return f.Await(ctx, time.Minute) },
		"AwaitAll": func(ctx context.Context, f *async.Future[*value]) (*value, error) {
			all := async.AwaitAll(ctx, 0, f)
			return all[0].Value, all[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					var gone atomic.Bool
					func() {
						f := async.Execute(ctx, func(context.Context) (*value, error) {
							time.Sleep(time.Second) // until the wait has parked
							v := new(value)
							runtime.AddCleanup(v, func(gone *atomic.Bool) { gone.Store(true) }, &gone)
							return v, nil
						})
						_, err := wait(ctx, f)
						require.NoError(t, err)
					}()
					for i := 0; i < 1000 && !gone.Load(); i++ {
						runtime.GC()
						runtime.Gosched()
					}
					require.True(t, gone.Load(), "the future is still there")
					return nil
				}))
			})
		})
	}
}
