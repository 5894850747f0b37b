package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// awaitError is a handler's own error.
type awaitError struct{ code int }

func (e *awaitError) Error() string { return fmt.Sprint("own error ", e.code) }

// stubborn returns a handler that takes d whatever its context says.
func stubborn[T any](d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(context.Context) (T, error) {
		time.Sleep(d)
		return value, err
	}
}

// obedient returns a handler that waits to be told to stop and then takes d,
// and at least a moment: an Await that expires must not find it settled.
func obedient[T any](d time.Duration, value T, err error) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		untilStopped(ctx)
		time.Sleep(d)
		return value, err
	}
}

// untilStopped waits until ctx is done and everybody else in the bubble waits.
func untilStopped(ctx context.Context) {
	<-ctx.Done()
	time.Sleep(time.Nanosecond)
}

// tookAbout fails t unless want has passed since start, and a little.
func tookAbout(t *testing.T, want time.Duration, start time.Time) {
	t.Helper()
	took := time.Since(start)
	require.GreaterOrEqual(t, took, want)
	require.LessOrEqual(t, took, want+time.Microsecond)
}

// panicFrom returns what f panics with, nil if it does not.
func panicFrom(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// awaitInRootAndScope runs f with the context of a test's root and with that
// of a scope.
func awaitInRootAndScope(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Run("root", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, asynctest.Context(t)) })
	})
	t.Run("scope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				f(t, ctx)
				return nil
			}))
		})
	})
}

func TestAwaitReturnsOnTimeThoughTheHandlerIgnoresItsContext(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		f := async.Execute(ctx, stubborn(time.Hour, 1, nil))
		v, err := f.Await(ctx, time.Second)
		tookAbout(t, time.Second, start)
		require.Zero(t, v)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		v, err = f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, v, "a later wait is given the real outcome")
		tookAbout(t, time.Hour, start)
	})
}

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

func TestAnAbortedRootTaskIsAStragglerUntilItEndsAndShutdownReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		f := async.Execute(ctx, stubborn(time.Minute, 1, nil), async.Name("stubborn"))
		require.Equal(t, []string{"stubborn"}, asynctest.Live(ctx))
		_, err := f.Await(ctx, time.Second)
		require.Error(t, err)
		require.Equal(t, async.Aborting, f.State())
		require.Equal(t, []string{"stubborn"}, asynctest.Live(ctx), "still there, so still seen")

		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = async.Shutdown(brief)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.Contains(t, left.Left[0].Stack, "time.Sleep", "with the stack of its goroutine")
		require.ErrorContains(t, err, "stubborn")

		<-f.Done()
		synctest.Wait()
		require.Empty(t, asynctest.Live(ctx))
		require.NoError(t, async.Shutdown(ctx))
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

func TestATieBetweenResultAndDeadlineIsTheResult(t *testing.T) {
	for range 100 {
		awaitTie(t, func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Await(ctx, time.Second) })
		awaitTie(t, func(ctx context.Context, f *async.Future[int]) (int, error) {
			r := async.AwaitAll(ctx, time.Second, f)
			return r[0].Value, r[0].Err
		})
	}
}

func awaitTie(t *testing.T, await func(ctx context.Context, f *async.Future[int]) (int, error)) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		v, err := await(ctx, async.Execute(ctx, stubborn(time.Second, 7, nil)))
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// TestASettledResultBeatsAContextThatIsCancelledAfterIt: who cancels has seen
// the future settled, so a wait that is parked meanwhile must not tell the
// cancellation.
func TestASettledResultBeatsAContextThatIsCancelledAfterIt(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 2000 {
		f := async.Execute(root, func(context.Context) (int, error) {
			runtime.Gosched()
			return 7, nil
		})
		ctx, cancel := context.WithCancel(root)
		go func() {
			<-f.Done()
			cancel()
		}()
		wait := f.Wait
		if i%2 == 0 {
			wait = func(ctx context.Context) (int, error) { return f.Await(ctx, 0) }
		}
		v, err := wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	}
}

func TestASettledResultBeatsADoneContext(t *testing.T) {
	root := asynctest.Context(t)
	done, cancel := context.WithCancelCause(root)
	cancel(errors.New("too late"))
	own := errors.New("own")
	for range 1000 {
		for _, f := range []*async.Future[int]{
			async.Completed(7, own),
			async.Execute(root, func(context.Context) (int, error) { return 7, own }),
		} {
			<-f.Done()
			for _, timeout := range []time.Duration{-1, 0, 1, time.Hour} {
				v, err := f.Await(done, timeout)
				require.Equal(t, 7, v)
				require.Equal(t, own, err)
				r := async.AwaitAll(done, timeout, f)
				require.Equal(t, []async.Result[int]{{Index: 0, Value: 7, Err: own}}, r)
			}
			v, err := f.Wait(done)
			require.Equal(t, 7, v)
			require.Equal(t, own, err)
		}
	}
}

func TestAwaitTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, handler time.Duration
		took             time.Duration
		expires          bool
	}{
		"zero sets no limit":                     {0, 1000 * time.Hour, 1000 * time.Hour, false},
		"a limit that is not reached":            {time.Hour, time.Second, time.Second, false},
		"a limit that passes":                    {time.Second, time.Hour, time.Second, true},
		"the shortest":                           {1, time.Hour, 1, true},
		"negative has expired, looks and aborts": {-1, time.Hour, 0, true},
		"very negative":                          {-1 << 63, time.Hour, 0, true},
		"the longest":                            {1<<63 - 1, time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				cause := make(chan error, 1)
				f := async.Execute(ctx, stubborn(test.handler, 7, nil), async.OnAbort(func(_ context.Context, why error) error {
					cause <- why
					return nil
				}))
				synctest.Wait() // the handler runs: its hook is due at an abort
				v, err := f.Await(ctx, test.timeout)
				tookAbout(t, test.took, start)
				if !test.expires {
					require.NoError(t, err)
					require.Equal(t, 7, v)
					return
				}
				require.Zero(t, v)
				var te *async.TimeoutError
				require.ErrorAs(t, err, &te)
				require.Equal(t, test.timeout, te.Limit)
				require.Same(t, te, <-cause, "it aborted")
				v, err = f.Await(ctx, 0)
				require.NoError(t, err)
				require.Equal(t, 7, v)
			})
		})
	}
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

func TestAnExpiredAwaitWaitsForGrace(t *testing.T) {
	own := &awaitError{4}
	for name, test := range map[string]struct {
		grace   time.Duration
		handler func(context.Context) (int, error)
		took    time.Duration
		check   func(t *testing.T, v int, err, cause error)
	}{
		"a value within it wins": {2 * time.Second, obedient(time.Second, 7, nil), 2 * time.Second, func(t *testing.T, v int, err, _ error) {
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}},
		"an error within it wins, with the cause": {2 * time.Second, obedient(time.Second, 0, error(own)), 2 * time.Second, func(t *testing.T, _ int, err, cause error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.ErrorIs(t, err, cause)
		}},
		"beyond it is too late": {2 * time.Second, obedient(3*time.Second, 7, nil), 3 * time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
		"none by default": {0, obedient(0, 7, nil), time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
		"negative is none": {-time.Second, obedient(time.Second, 7, nil), time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				var cause error
				f := async.Execute(ctx, func(ctx context.Context) (int, error) {
					v, err := test.handler(ctx)
					return v, err
				}, async.Grace(test.grace), async.OnAbort(func(_ context.Context, why error) error {
					cause = why
					return nil
				}))
				v, err := f.Await(ctx, time.Second)
				tookAbout(t, test.took, start)
				synctest.Wait()
				test.check(t, v, err, cause)
				_, _ = f.Wait(ctx)
			})
		})
	}
}

func TestGraceAlsoHoldsWhenTheContextEnds(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		f := async.Execute(ctx, obedient(time.Second, 7, nil), async.Grace(2*time.Second))
		v, err := f.Await(brief, 0)
		require.NoError(t, err)
		require.Equal(t, 7, v)
		tookAbout(t, 2*time.Second, start)
	})
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
					require.Equal(t, async.Running, f.State())

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

func TestAwaitAllReturnsOutcomesInTheOrderOfItsArguments(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("own")
		var all []*async.Future[int]
		for i := range 10 {
			var err error
			if i%3 == 0 {
				err = own
			}
			all = append(all, async.Execute(ctx, stubborn(time.Duration(10-i)*time.Second, i, err)))
		}
		all = append(all, async.Completed(10, nil), all[4])
		start := time.Now()
		got := async.AwaitAll(ctx, time.Hour, all...)
		tookAbout(t, 10*time.Second, start)
		require.Len(t, got, 12)
		for i, r := range got {
			require.Equal(t, i, r.Index)
			if i == 11 {
				i = 4
			}
			require.Equal(t, i, r.Value)
			require.Equal(t, i < 10 && i%3 == 0, r.Err == own)
		}
	})
}

func TestAwaitAllOfNothing(t *testing.T) {
	require.Empty(t, async.AwaitAll[int](asynctest.Context(t), -1))
}

func TestAwaitAllHasOneLimitAndAbortsAllAtOnce(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		aborted := map[string]time.Duration{}
		causes := map[string]error{}
		start := time.Now()
		task := func(name string, d time.Duration) *async.Future[int] {
			return async.Execute(ctx, stubborn(d, 7, nil), async.Name(name), async.OnAbort(func(_ context.Context, why error) error {
				mu.Lock()
				defer mu.Unlock()
				aborted[name], causes[name] = time.Since(start).Truncate(time.Microsecond), why
				return nil
			}))
		}
		quick := task("quick", 4*time.Second)
		slow := task("slow", time.Hour)
		middling := task("middling", 8*time.Second)
		slower := task("slower", 2*time.Hour)
		got := async.AwaitAll(ctx, 10*time.Second, quick, slow, middling, slower)
		tookAbout(t, 10*time.Second, start)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, map[string]time.Duration{"slow": 10 * time.Second, "slower": 10 * time.Second}, aborted)
		for i, name := range []string{"quick", "slow", "middling", "slower"} {
			if causes[name] == nil {
				require.NoError(t, got[i].Err)
				require.Equal(t, 7, got[i].Value, "a settled result wins")
				continue
			}
			require.Zero(t, got[i].Value)
			require.True(t, got[i].Err == causes[name], "each task's cause is what is told of it")
			var te *async.TimeoutError
			require.ErrorAs(t, got[i].Err, &te)
			require.Contains(t, te.Task, name)
			require.Equal(t, 10*time.Second, te.Limit, "the limit is that of the call")
			require.InDelta(t, 10*time.Second, te.Waited, float64(time.Microsecond))
		}
		for _, r := range async.AwaitAll(ctx, 0, slow, slower) {
			require.NoError(t, r.Err)
			require.Equal(t, 7, r.Value)
		}
	})
}

func TestGracesOfAwaitAllRunSideBySide(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		all := []*async.Future[int]{
			async.Execute(ctx, obedient(3*time.Second, 0, nil), async.Grace(4*time.Second)),
			async.Execute(ctx, obedient(5*time.Second, 1, nil), async.Grace(2*time.Second)),
			async.Execute(ctx, obedient(1*time.Second, 2, nil), async.Grace(2*time.Second)),
			async.Execute(ctx, obedient(4*time.Second, 3, nil), async.Grace(3*time.Second)),
			async.Execute(ctx, stubborn(time.Hour, 4, nil)),
		}
		got := async.AwaitAll(ctx, 10*time.Second, all...)
		tookAbout(t, 13*time.Second, start)
		for i, within := range []bool{true, false, true, false, false} {
			require.Equal(t, i, got[i].Index)
			if within {
				require.NoError(t, got[i].Err)
				require.Equal(t, i, got[i].Value)
			} else {
				require.ErrorIs(t, got[i].Err, context.DeadlineExceeded)
			}
		}
		async.AwaitAll(ctx, 0, all...)
	})
}

func TestAwaitAllAbortsAllWhenItsContextEnds(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		t.Run(timeout.String(), func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				why := errors.New("enough")
				start := time.Now()
				limited, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(2*time.Second, func() { cancel(why) })
				causes := make([]error, 3)
				var all []*async.Future[int]
				for i := range 3 {
					all = append(all, async.Execute(ctx, func(ctx context.Context) (int, error) {
						if i == 0 {
							time.Sleep(time.Second)
							return 7, nil
						}
						untilStopped(ctx)
						causes[i] = context.Cause(ctx)
						return 0, nil
					}))
				}
				got := async.AwaitAll(limited, timeout, all...)
				tookAbout(t, 2*time.Second, start)
				require.Equal(t, async.Result[int]{Index: 0, Value: 7}, got[0])
				for i := 1; i < 3; i++ {
					require.ErrorIs(t, got[i].Err, context.Canceled)
					require.ErrorIs(t, got[i].Err, why)
					<-all[i].Done()
					require.Equal(t, why, causes[i])
				}
			})
		})
	}
}

func TestANegativeAwaitAllLooksOnceAndAborts(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		got := async.AwaitAll(ctx, -1, async.Execute(ctx, obedient(0, 1, nil)), async.Completed(2, nil), async.Execute(ctx, obedient(0, 3, nil)))
		tookAbout(t, 0, start)
		require.ErrorIs(t, got[0].Err, context.DeadlineExceeded)
		require.NoError(t, got[1].Err)
		require.ErrorIs(t, got[2].Err, context.DeadlineExceeded)
	})
}

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
			expect(async.Queued, false, false)
			<-first.Done()
			expect(async.Running, true, false)
			time.Sleep(1500 * time.Millisecond)
			expect(async.Running, true, false) // handler has returned, what it started runs
			require.True(t, f.Cancel(nil))
			expect(async.Aborting, true, false)
			require.False(t, f.Cancel(errors.New("again")))
			<-f.Done()
			expect(async.Done, false, true)
			require.False(t, f.Cancel(nil))
			return nil
		}, async.Limit(1)))
	})
	require.Equal(t, "queued running aborting done", fmt.Sprint(async.Queued, async.Running, async.Aborting, async.Done))
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
		require.Equal(t, async.Done, f.State())
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

func TestDiscardedValues(t *testing.T) {
	late := func(t *testing.T, ctx context.Context, drop func(int), opts ...async.TaskOption) (*async.Future[int], error) {
		f := async.Execute(ctx, obedient(time.Second, 7, nil), append(opts, async.OnDiscard(drop))...)
		_, err := f.Await(ctx, time.Second)
		return f, err
	}
	for name, test := range map[string]struct {
		run  func(t *testing.T, ctx context.Context, drop func(int))
		want []int
	}{
		"late after a timeout was told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, told := late(t, ctx, drop)
			require.ErrorIs(t, told, context.DeadlineExceeded)
			for range 3 {
				v, err := f.Await(ctx, 0)
				require.Zero(t, v)
				require.ErrorIs(t, err, told, "the future settles with what that waiter was told")
			}
		}, []int{7}},
		"late after a done ctx was told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			why := errors.New("why")
			brief, cancel := context.WithCancelCause(ctx)
			cancel(why)
			f := async.Execute(ctx, obedient(time.Second, 7, nil), async.OnDiscard(drop))
			_, err := f.Await(brief, 0)
			require.ErrorIs(t, err, why)
			_, err = f.Wait(ctx)
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, context.Canceled)
		}, []int{7}},
		"many were told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f := async.Execute(ctx, obedient(time.Second, 7, nil), async.OnDiscard(drop))
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					_, err := f.Await(ctx, time.Second)
					require.Error(t, err)
				})
			}
			all.Wait()
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, []int{7}},
		"within grace it is given": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, err := late(t, ctx, drop, async.Grace(2*time.Second))
			require.NoError(t, err)
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"in time it is given": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f := async.Execute(ctx, stubborn(time.Second, 7, nil), async.OnDiscard(drop))
			v, err := f.Await(ctx, 2*time.Second)
			require.NoError(t, err)
			require.Equal(t, 7, v)
			v, err = f.Await(ctx, -1)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"who only observes is told nothing": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f := async.Execute(ctx, stubborn(time.Minute, 7, nil), async.OnDiscard(drop))
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := f.Wait(brief)
			require.Error(t, err)
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"a late error is no value": {func(t *testing.T, ctx context.Context, drop func(int)) {
			own := &awaitError{1}
			f := async.Execute(ctx, obedient(time.Second, 7, error(own)), async.OnDiscard(drop))
			_, told := f.Await(ctx, time.Second)
			require.Error(t, told)
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, own)
			require.ErrorIs(t, err, told)
		}, nil},
		"without the option a late value is given": {func(t *testing.T, ctx context.Context, _ func(int)) {
			f := async.Execute(ctx, obedient(time.Second, 7, nil))
			_, err := f.Await(ctx, time.Second)
			require.Error(t, err)
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"a second Resolve": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(drop))
			require.True(t, p.Resolve(1))
			require.False(t, p.Resolve(2))
			require.False(t, p.Resolve(3))
			v, err := f.Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 1, v)
		}, []int{2, 3}},
		"a Resolve after Reject": {func(t *testing.T, ctx context.Context, drop func(int)) {
			own := errors.New("own")
			f, p := async.NewPromise[int](ctx, async.OnDiscard(drop))
			require.True(t, p.Reject(own))
			require.False(t, p.Resolve(2))
			_, err := f.Await(ctx, 0)
			require.ErrorIs(t, err, own)
		}, []int{2}},
		"a Resolve after a timeout was told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(drop))
			_, told := f.Await(ctx, time.Second)
			require.ErrorIs(t, told, context.DeadlineExceeded)
			p.Resolve(7)
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, told)
		}, []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				var mu sync.Mutex
				var dropped []int
				test.run(t, ctx, func(v int) {
					mu.Lock()
					defer mu.Unlock()
					dropped = append(dropped, v)
				})
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, test.want, dropped)
			})
		})
	}
}

// TestALateValueIsEitherGivenOrDiscarded: each value is handed to exactly one
// of the two, whatever the race between result and limit.
func TestALateValueIsEitherGivenOrDiscarded(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 2000 {
		var dropped atomic.Int32
		f := async.Execute(root, func(context.Context) (int, error) {
			for range i % 7 {
				runtime.Gosched()
			}
			return 7, nil
		}, async.OnDiscard(func(int) { dropped.Add(1) }))
		var told, given atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				brief, cancel := context.WithCancel(root)
				go cancel()
				if v, err := f.Await(brief, 0); err == nil {
					require.Equal(t, 7, v)
					given.Add(1)
				} else {
					told.Add(1)
				}
				cancel()
			})
		}
		all.Wait()
		v, err := f.Await(root, 0)
		switch dropped.Load() {
		case 0:
			require.NoError(t, err)
			require.Equal(t, 7, v)
		case 1:
			require.Error(t, err)
			require.NotZero(t, told.Load())
			require.Zero(t, given.Load(), "a value that was given must not be discarded")
		default:
			t.Fatal("discarded more than once")
		}
	}
}

func TestADiscardHookOfAnotherTypePanicsAtTheCall(t *testing.T) {
	ctx := asynctest.Context(t)
	ran := false
	handler := func(context.Context) (int, error) { ran = true; return 0, nil }
	for name, call := range map[string]func(){
		"Execute":    func() { async.Execute(ctx, handler, async.OnDiscard(func(string) {})) },
		"named type": func() { async.Execute(ctx, handler, async.OnDiscard(func(time.Duration) {})) },
		"interface":  func() { async.Execute(ctx, handler, async.OnDiscard(func(any) {})) },
		"Start":      func() { async.Start(ctx, nothing, async.OnDiscard(func(int) {})) },
		"NewPromise": func() { async.NewPromise[int](ctx, async.OnDiscard(func(string) {})) },
		"in a scope": func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Execute(ctx, handler, async.OnDiscard(func(string) {}))
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := panicFrom(call)
			require.NotNil(t, p)
			require.Contains(t, strings.ToLower(fmt.Sprint(p)), "discard")
		})
	}
	require.False(t, ran)
	require.Empty(t, asynctest.Live(ctx))
}

// TestWhoIsToldOfAFailure: an error that was given to nobody fails the scope
// at its end; what somebody was given or told does not.
func TestWhoIsToldOfAFailure(t *testing.T) {
	own := errors.New("own")
	fails := func(ctx context.Context, opts ...async.TaskOption) *async.Future[int] {
		return async.Execute(ctx, stubborn(time.Minute, 0, own), opts...)
	}
	for name, test := range map[string]struct {
		body  func(t *testing.T, ctx context.Context)
		fails bool
	}{
		"nobody awaits":       {func(_ *testing.T, ctx context.Context) { fails(ctx) }, true},
		"Start, nobody":       {func(_ *testing.T, ctx context.Context) { async.Start(ctx, func(context.Context) error { return own }) }, true},
		"Done claims nothing": {func(_ *testing.T, ctx context.Context) { <-fails(ctx).Done() }, true},
		"State claims nothing": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			require.Equal(t, async.Done, f.State())
		}, true},
		"Await": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Await(ctx, 0)
			require.ErrorIs(t, err, own)
		}, false},
		"Await after it settled": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			_, err := f.Await(ctx, -1)
			require.ErrorIs(t, err, own)
		}, false},
		"Wait": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Wait(ctx)
			require.ErrorIs(t, err, own)
		}, false},
		"a Wait that gave up": {func(t *testing.T, ctx context.Context) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := fails(ctx).Wait(brief)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, true},
		"AwaitAll": {func(t *testing.T, ctx context.Context) {
			for _, r := range async.AwaitAll(ctx, 0, fails(ctx), fails(ctx)) {
				require.ErrorIs(t, r.Err, own)
			}
		}, false},
		"an AwaitAll that expired": {func(t *testing.T, ctx context.Context) {
			for _, r := range async.AwaitAll(ctx, time.Second, fails(ctx), fails(ctx)) {
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			}
		}, false},
		"Result": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			_, err, ok := f.Result()
			require.True(t, ok)
			require.ErrorIs(t, err, own)
		}, false},
		"a Result that came too early": {func(t *testing.T, ctx context.Context) {
			_, err, ok := fails(ctx).Result()
			require.False(t, ok)
			require.NoError(t, err)
		}, true},
		"an Await that expired": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false},
		"an Await that has expired": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Await(ctx, -1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false},
		"an Await whose ctx ended": {func(t *testing.T, ctx context.Context) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := fails(ctx).Await(brief, 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false},
		"Cancel": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			require.True(t, f.Cancel(errors.New("no longer needed")))
		}, false},
		"Cancel after it failed, given to nobody": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			require.False(t, f.Cancel(nil))
		}, true},
		"somebody in another task": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			async.Go(ctx, func(ctx context.Context) error {
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, own)
				return nil
			})
		}, false},
		"a task that is told by its derived context": {func(_ *testing.T, ctx context.Context) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			fails(brief)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					test.body(t, ctx)
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
		for i, err := range list.Errors {
			require.Equal(t, &awaitError{i}, err)
		}
	})
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
			var err error
			for i := 0; i < 100 && err == nil && (test.told || i < 3); i++ {
				runtime.GC()
				err = check()
			}
			if test.told {
				require.ErrorIs(t, err, own)
			} else {
				require.NoError(t, err)
			}
		})
	}
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
			if v, err := f.Wait(ctx); err != nil || v != i {
				return fmt.Errorf("%d: %v, %w", i, v, err)
			}
		}
		return nil
	}))
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
