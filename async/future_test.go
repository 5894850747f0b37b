package async_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
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

func TestStatesOfAFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			first := async.Execute(ctx, stubborn(time.Second, 1, nil))
			f := async.Execute(ctx, func(ctx context.Context) (int, error) {
				async.Go(ctx, func(context.Context) error { time.Sleep(3 * time.Second); return nil })
				time.Sleep(time.Second)
				return 7, nil
			})
			expect := func(state async.State, running, settled bool) {
				t.Helper()
				synctest.Wait()
				require.Equal(t, state, f.State())
				require.Equal(t, running, f.IsRunning())
				v, err, ok := f.Result()
				require.Equal(t, settled, ok)
				require.NoError(t, err)
				select {
				case <-f.Done():
					require.True(t, settled)
					require.Equal(t, 7, v)
				default:
					require.False(t, settled)
					require.Zero(t, v)
				}
			}
			expect(async.StateQueued, false, false)
			<-first.Done()
			expect(async.StateRunning, true, false)
			time.Sleep(1500 * time.Millisecond)
			expect(async.StateRunning, true, false) // handler has returned, what it started runs
			require.True(t, f.Cancel(nil))
			expect(async.StateAborting, true, false)
			require.False(t, f.Cancel(errors.New("again")))
			<-f.Done()
			expect(async.StateDone, false, true)
			require.False(t, f.Cancel(nil))
			return nil
		}, async.Limit(1)))
	})
	require.Equal(t, "queued running aborting done", fmt.Sprint(async.StateQueued, async.StateRunning, async.StateAborting, async.StateDone))
}

func TestAFutureSettlesWhenAllThatItsHandlerStartedHasEnded(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				return nil
			})
			return 7, nil
		})
		v, err := f.Await(ctx, 0)
		tookAbout(t, time.Hour, start)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

func TestWhatATaskStartsAndFailsWithIsItsOutcome(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("child")
		_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			async.Go(ctx, func(context.Context) error { return own })
			return 7, nil
		}).Await(ctx, 0)
		require.ErrorIs(t, err, own)
	})
}

func TestWhatATaskDidHappensBeforeItsDone(t *testing.T) {
	root := asynctest.Context(t)
	for range 200 {
		x := 0 // the race detector watches
		f := async.Execute(root, func(context.Context) (int, error) { x = 1; return 0, nil })
		for range 4 {
			go func() {
				<-f.Done()
				_ = x
			}()
		}
		_, _ = f.Wait(root)
		require.Equal(t, 1, x)
	}
}

func TestDoneIsOneChannelForAll(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, stubborn(time.Second, 7, nil))
		require.Equal(t, f.Done(), f.Done())
		start := time.Now()
		<-f.Done()
		tookAbout(t, time.Second, start)
		<-f.Done()
	})
}

func TestCompletedHasSettled(t *testing.T) {
	own := errors.New("own")
	ctx, check := asynctest.Root(t.Context())
	require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
		f := async.Completed("value", own)
		require.Equal(t, async.StateDone, f.State())
		require.False(t, f.IsRunning())
		require.False(t, f.Cancel(nil))
		<-f.Done()
		v, err := f.Await(ctx, -1)
		require.Equal(t, "value", v)
		require.Equal(t, own, err)
		v, err, ok := f.Result()
		require.True(t, ok)
		require.Equal(t, "value", v)
		require.Equal(t, own, err)
		async.Completed(0, own) // nobody's failure
		return nil
	}))
	runtime.GC()
	require.NoError(t, check())
}

func TestStartIsExecuteForWorkWithoutAValue(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("own")
		_, err := async.Start(ctx, func(context.Context) error { return nil }).Await(ctx, 0)
		require.NoError(t, err)
		_, err = async.Start(ctx, func(context.Context) error { return own }).Await(ctx, 0)
		require.ErrorIs(t, err, own)
		start := time.Now()
		_, err = async.Start(ctx, func(ctx context.Context) error { untilStopped(ctx); return nil }).Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, time.Second, start)
	})
}

func TestANilHandlerPanicsAtTheCall(t *testing.T) {
	ctx := asynctest.Context(t)
	require.NotNil(t, panicFrom(func() { async.Execute[int](ctx, nil) }))
	require.NotNil(t, panicFrom(func() { async.Start(ctx, nil) }))
	require.NotNil(t, panicFrom(func() { async.OnAbort(nil) }))
	require.NotNil(t, panicFrom(func() { async.OnDiscard[int](nil) }))
	require.Empty(t, asynctest.Live(ctx))
}

func TestATaskThatEndsIsNotSaidToBeAborting(t *testing.T) {
	for range 2000 / raceFactor {
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			f := async.Execute(ctx, answer)
			for s := f.State(); s != async.StateDone; s = f.State() {
				require.NotEqual(t, async.StateAborting, s)
				runtime.Gosched()
			}
			return nil
		})
	}
	var f atomic.Pointer[async.Future[int]]
	ready := make(chan struct{})
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		f.Store(async.Execute(ctx, func(context.Context) (int, error) { <-ready; return 1, nil }))
		close(ready)
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if f := f.Load(); e.Kind == async.EventEnd && f != nil {
			require.NotEqual(t, async.StateAborting, f.State())
		}
	}))))
}

func TestWaitLeavesTheTaskAlone(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			time.Sleep(time.Hour)
			return 7, ctx.Err()
		}, async.OnAbort(func(context.Context, error) error { return errors.New("nobody asked for it") }))
		for range 3 {
			brief, cancel := context.WithTimeout(ctx, time.Minute)
			v, err := f.Wait(brief)
			cancel()
			require.Zero(t, v)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, f.IsRunning())
		}
		v, err := f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

func TestAnyNumberMayAwaitAnyNumberOfTimes(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, stubborn(time.Minute, 7, nil))
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if i%2 == 0 { // gives up, comes back
					brief, cancel := context.WithTimeout(ctx, time.Duration(i+1)*time.Millisecond)
					defer cancel()
					_, err := f.Wait(brief)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				for range 3 {
					v, err := f.Await(ctx, time.Hour)
					require.NoError(t, err)
					require.Equal(t, 7, v)
				}
			})
		}
		all.Wait()
	})
}

func TestAWaitAfterOneThatGaveUpIsNotDisturbedByIt(t *testing.T) {
	root := asynctest.Context(t)
	require.NoError(t, async.Scope(root, func(ctx context.Context) error {
		for i := range 2000 {
			f, p := async.NewPromise[int](ctx)
			go func() { p.Resolve(i) }()
			if i%2 == 0 {
				_, _ = f.Await(ctx, 1) // a nanosecond: expires about when the promise is resolved
			} else {
				brief, cancel := context.WithCancel(ctx)
				go cancel()
				_, _ = f.Wait(brief)
				cancel()
			}
			start, q := async.NewPromise[int](ctx)
			go func() { q.Resolve(-i) }()
			v, err := start.Await(ctx, 0)
			if err != nil || v != -i {
				return fmt.Errorf("%d: %v, %w", i, v, err)
			}
			// An expired Await cancels the promise, which settles with that.
			if v, err := f.Wait(ctx); i%2 == 0 && errors.Is(err, context.DeadlineExceeded) {
				continue
			} else if err != nil || v != i {
				return fmt.Errorf("%d: %v, %w", i, v, err)
			}
		}
		return nil
	}))
}

func TestJoinWaitsUntilTheEnd(t *testing.T) {
	for name, test := range map[string]func(ctx context.Context) (context.Context, func()){
		"its own scope's context": func(ctx context.Context) (context.Context, func()) { return ctx, func() {} },
		"a context with a limit": func(ctx context.Context) (context.Context, func()) {
			return context.WithTimeout(ctx, time.Second)
		},
		"a cancelled context": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
		"Background": func(context.Context) (context.Context, func()) { return context.Background(), func() {} },
		"that of an ended scope": func(ctx context.Context) (ended context.Context, _ func()) {
			_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
			return ended, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					start := time.Now()
					f := async.Execute(ctx, func(ctx context.Context) (int, error) {
						<-ctx.Done()
						time.Sleep(time.Hour) // it takes its time
						async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
						return 42, nil
					})
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return errContext })
					waiting, cancel := test(ctx)
					defer cancel()
					v, err := f.Join(waiting)
					require.NoError(t, err)
					require.Equal(t, 42, v)
					require.Equal(t, 2*time.Hour+time.Minute, time.Since(start))
					v, err = f.Join(waiting)
					require.NoError(t, err, "any number of times")
					require.Equal(t, 42, v)
					return nil
				})
			})
		})
	}
}

func TestJoinGivesTheErrorAndAbortsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			done, cancel := context.WithCancel(ctx)
			cancel()
			f := async.Start(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return errors.Join(errContext, ctx.Err()) })
			_, err := f.Join(done)
			require.ErrorIs(t, err, errContext)
			require.NotErrorIs(t, err, context.Canceled)
			return nil
		}), "it has been given")
	})
}

func TestAJoinThatLeadsBackIsACycle(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			var a, b *async.Future[struct{}]
			ready := make(chan struct{})
			gone, cancel := context.WithCancel(ctx)
			cancel()
			a = async.Start(ctx, func(ctx context.Context) error { <-ready; _, err := b.Join(ctx); return err }, async.Name("a"))
			b = async.Start(ctx, func(ctx context.Context) error {
				<-ready
				time.Sleep(time.Second)
				_, err := a.Join(ctx)
				return err
			}, async.Name("b"))
			close(ready)
			_, err := a.Join(gone)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			require.EqualError(t, err, "async: await cycle: b -> a -> b")
			_, err = b.Join(gone)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			return nil
		}))
	})
}

func TestJoinLendsTheSlotOfTheTaskThatWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			outer := async.Start(ctx, func(ctx context.Context) error {
				done, cancel := context.WithCancel(ctx)
				cancel()
				_, err := async.Start(ctx, func(context.Context) error { return nil }).Join(done)
				return err
			})
			_, err := outer.Join(ctx)
			return err
		}, async.Limit(1)))
	})
}

func TestWaitsOfNothingSayWhatIsWrong(t *testing.T) {
	var missing *async.Future[int]
	zero := new(async.Future[int])
	ctx := context.Background()
	for op, call := range map[string]func(f *async.Future[int]){
		"Await":     func(f *async.Future[int]) { _, _ = f.Await(ctx, 0) },
		"Wait":      func(f *async.Future[int]) { _, _ = f.Wait(ctx) },
		"Join":      func(f *async.Future[int]) { _, _ = f.Join(ctx) },
		"AwaitAll":  func(f *async.Future[int]) { async.AwaitAll(ctx, 0, async.Completed(1, nil), f) },
		"Done":      func(f *async.Future[int]) { f.Done() },
		"Result":    func(f *async.Future[int]) { _, _, _ = f.Result() },
		"Cancel":    func(f *async.Future[int]) { f.Cancel(nil) },
		"IsRunning": func(f *async.Future[int]) { f.IsRunning() },
		"State":     func(f *async.Future[int]) { f.State() },
	} {
		require.Contains(t, panicFrom(func() { call(missing) }), "async: "+op+" of a nil Future", op)
		require.Contains(t, panicFrom(func() { call(zero) }), "async: "+op+" of a zero Future", op)
	}
	f := async.Start(ctx, func(context.Context) error { return nil })
	for op, call := range map[string]func(){
		"Await": func() { _, _ = f.Await(none, 0) },
		"Wait":  func() { _, _ = f.Wait(none) },
		"Join":  func() { _, _ = f.Join(none) },
	} {
		if p := panicFrom(call); p != nil { // it may have settled, which is looked at first
			require.Contains(t, p, "nil context", op)
		}
	}
	_, _ = f.Join(ctx)
}

// Cancelling a future that had settled counts, for its owner, as having
// been given its error.
func TestCancelOfASettledFutureGivesItsError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { return errContext })
			synctest.Wait()
			require.False(t, f.Cancel(errors.New("not needed any more")))
			_, err := f.Await(ctx, 0)
			require.Equal(t, errContext, err, "a later wait is given the outcome")
			return nil
		}))
		require.NotNil(t, panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(context.Context) error { panic("loud") })
				synctest.Wait()
				f.Cancel(nil)
				return nil
			})
		}), "a panic is given only by being returned")
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil })
			synctest.Wait()
			f.Cancel(nil)
			return nil
		}), async.ErrGoexit)
	})
}

func joinUntilDone(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// The first cause wins, also when the task has settled: its context says ErrScopeEnded only if
// nothing had cancelled it before.
func TestTheContextOfASettledTaskSaysTheSame(t *testing.T) {
	gone := errors.New("gone")
	tests := map[string]struct {
		cancel func(context.Context)
		err    error
		cause  error
	}{
		"deadline of its scope": {func(context.Context) { time.Sleep(2 * time.Second) }, context.DeadlineExceeded, context.DeadlineExceeded},
		"a sibling has failed": {func(ctx context.Context) {
			async.Go(ctx, func(context.Context) error { return gone })
			synctest.Wait()
		}, context.Canceled, gone},
		"nothing": {func(context.Context) {}, nil, async.ErrScopeEnded},
	}
	for name, test := range tests {
		for _, outcome := range []error{nil, gone} {
			t.Run(fmt.Sprintf("%s: %v", name, outcome), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var task context.Context
					_ = async.Scope(t.Context(), func(ctx context.Context) error {
						within := ctx
						async.Go(ctx, func(ctx context.Context) error {
							task = ctx
							test.cancel(within)
							assert.Equal(t, test.err, ctx.Err())
							return outcome
						})
						return nil
					}, async.Timeout(time.Second))
					assert.Equal(t, cmp.Or(test.err, context.Canceled), task.Err())
					assert.ErrorIs(t, context.Cause(task), test.cause)
					<-task.Done()
				})
			})
		}
	}
}
