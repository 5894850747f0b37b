package compat_test

// Do not run go fix over these tests: it would inline what they test.

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/compat"
)

var (
	errEven  = errors.New("even")
	errFirst = errors.New("first failed")
	errPoll  = errors.New("poll failed")
	errMain  = errors.New("handler failed")
	errCheck = errors.New("check failed")
	errStop  = errors.New("stop")
)

const ms = time.Millisecond

// inRootAndScope runs f in a bubble, with tasks that their Await owns, and
// again with tasks that a scope owns.
func inRootAndScope(t *testing.T, f func(t *testing.T, ctx context.Context)) {
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

// tookAbout allows for the instant by which a limit may be late, so that what
// settles right at the limit has settled.
func tookAbout(t *testing.T, want time.Duration, start time.Time) {
	t.Helper()
	require.InDelta(t, want, time.Since(start), float64(time.Microsecond))
}

// deaf returns a handler that takes d, whatever its context says.
func deaf(d time.Duration, v any, err error) compat.Handler {
	return func(context.Context, any) (any, error) {
		time.Sleep(d)
		return v, err
	}
}

// contender returns a deaf handler for a race.
func contender(d time.Duration, v any, err error) compat.NoArgHandler {
	return func(context.Context) (any, error) {
		time.Sleep(d)
		return v, err
	}
}

// obedient is a handler that works until it is stopped, and says why it was.
func obedient(ctx context.Context, _ any) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// hook is an abort handler that can be asked how often it was called, and with
// which request.
type hook struct {
	calls   atomic.Int32
	request atomic.Value
}

func (h *hook) abort(ctx context.Context, request any) (any, error) {
	if ctx.Err() == nil { // it can still do something
		h.calls.Add(1)
	}
	h.request.Store(request)
	return nil, nil
}

func squareOfOdd(_ context.Context, request any) (any, error) {
	n := request.(int)
	if n%2 == 0 {
		return nil, errEven
	}
	return n * n, nil
}

// fib takes far longer than any test for a large n, but hears when to stop.
func fib(ctx context.Context, n uint) uint64 {
	if n <= 1 || n > 20 && ctx.Err() != nil {
		return uint64(n)
	}
	return fib(ctx, n-1) + fib(ctx, n-2)
}

// TestAnAwaitOfTenMillisecondsEndsThoughTheComputationDoesNot uses the
// processor and the clock of the machine.
func TestAnAwaitOfTenMillisecondsEndsThoughTheComputationDoesNot(t *testing.T) {
	ctx, cancel := context.WithCancel(asynctest.Context(t)) // nothing ends the computation but an abort
	defer cancel()
	future := compat.Execute(ctx, func(ctx context.Context, request any) (any, error) {
		return fib(ctx, request.(uint)), nil
	}, compat.NoAbort, uint(10000))
	_, err := future.Await(ctx, 10*ms)
	require.ErrorContains(t, err, "deadline exceeded")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAContextWithADeadlineEndsTheAwait(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 10*ms)
		defer cancel()
		_, err := compat.Execute(ctx, deaf(100*ms, nil, nil), compat.NoAbort, nil).Await(ctx, time.Hour)
		require.ErrorContains(t, err, "deadline exceeded")
	})
}

func TestHandlersAreGivenTheirRequestAndFailOnTheirOwn(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var futures []compat.Awaiter
		for i := 1; i <= 4; i++ {
			futures = append(futures, compat.Execute(ctx, squareOfOdd, compat.NoAbort, i))
		}
		sum, failed := 0, 0
		for _, f := range futures {
			v, err := f.Await(ctx, time.Second)
			if err != nil {
				require.ErrorIs(t, err, errEven)
				require.Nil(t, v)
				failed++
			} else {
				sum += v.(int)
			}
		}
		require.Equal(t, 10, sum)
		require.Equal(t, 2, failed)
	})
}

func TestAwaitAllKeepsTheOrderAndHasOneLimit(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		slow := compat.Execute(ctx, obedient, compat.NoAbort, nil)
		slower := compat.Execute(ctx, obedient, compat.NoAbort, nil)
		three := compat.Execute(ctx, squareOfOdd, compat.NoAbort, 3)
		two := compat.Execute(ctx, squareOfOdd, compat.NoAbort, 2)
		_, _ = three.Wait(ctx)
		_, _ = two.Wait(ctx)
		responses := compat.AwaitAll(ctx, time.Second, three, slow, two, slower)
		tookAbout(t, time.Second, start)
		require.Len(t, responses, 4)
		require.Equal(t, compat.Response{Result: 9}, responses[0])
		require.ErrorIs(t, responses[1].Err, context.DeadlineExceeded)
		require.Equal(t, compat.Response{Err: errEven}, responses[2])
		require.ErrorIs(t, responses[3].Err, context.DeadlineExceeded)
		require.Empty(t, compat.AwaitAll(ctx, time.Second))
	})
}

func TestIsRunningUntilTheTaskHasSettled(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		future := compat.Execute(ctx, deaf(time.Second, 1, nil), compat.NoAbort, nil)
		synctest.Wait()
		require.True(t, future.IsRunning())
		_, err := future.Await(ctx, time.Hour)
		require.NoError(t, err)
		require.False(t, future.IsRunning())
	})
}

func TestASecondAwaitIsGivenTheRealOutcome(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context) compat.Awaiter{
		"Execute": func(ctx context.Context) compat.Awaiter {
			return compat.Execute(ctx, deaf(time.Second, 7, nil), compat.NoAbort, nil)
		},
		"ExecuteRacer": func(ctx context.Context) compat.Awaiter {
			f, err := compat.ExecuteRacer(ctx, contender(time.Second, 7, nil))
			require.NoError(t, err)
			return f
		},
		"ExecutePolling": func(ctx context.Context) compat.Awaiter {
			return compat.ExecutePolling(ctx, func(context.Context, any) (bool, any, error) {
				time.Sleep(time.Second)
				return true, 7, nil
			}, compat.NoAbort, nil, ms)
		},
		"ExecuteWatchdog": func(ctx context.Context) compat.Awaiter {
			return compat.ExecuteWatchdog(ctx, deaf(time.Second, 7, nil), healthy, compat.NoAbort, nil, ms)
		},
		"ExecuteWatchdog, with a check that hears": func(ctx context.Context) compat.Awaiter {
			return compat.ExecuteWatchdog(ctx, deaf(time.Second, 7, nil), func(ctx context.Context, _ any) error {
				<-ctx.Done()
				return ctx.Err()
			}, compat.NoAbort, nil, ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRootAndScope(t, func(t *testing.T, ctx context.Context) {
				f := start(ctx)
				v, err := f.Await(ctx, 10*ms)
				require.ErrorContains(t, err, "deadline exceeded")
				require.Nil(t, v)
				for range 2 {
					v, err = f.Await(ctx, time.Hour)
					require.NoError(t, err)
					require.Equal(t, 7, v)
				}
			})
		})
	}
}

func TestAnExpiredAwaitCancelsTheHandlerAndCallsTheAbortHandlerOnce(t *testing.T) {
	var h *hook
	for name, start := range map[string]func(ctx context.Context) compat.Awaiter{
		"Execute": func(ctx context.Context) compat.Awaiter {
			return compat.Execute(ctx, obedient, h.abort, "request")
		},
		"ExecutePolling": func(ctx context.Context) compat.Awaiter {
			return compat.ExecutePolling(ctx, func(ctx context.Context, request any) (bool, any, error) {
				_, err := obedient(ctx, request)
				return false, nil, err
			}, h.abort, "request", ms)
		},
		"ExecuteWatchdog": func(ctx context.Context) compat.Awaiter {
			return compat.ExecuteWatchdog(ctx, obedient, healthy, h.abort, "request", ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRootAndScope(t, func(t *testing.T, ctx context.Context) {
				h = new(hook)
				f := start(ctx)
				_, first := f.Await(ctx, 10*ms)
				require.ErrorIs(t, first, context.DeadlineExceeded)
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, first, "the cause that the handler saw")
				require.EqualValues(t, 1, h.calls.Load())
				require.Equal(t, "request", h.request.Load())
			})
		})
	}
}

func TestTheAbortHandlerIsNotCalledForATaskThatEnds(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		h := new(hook)
		_, err := compat.Execute(ctx, squareOfOdd, h.abort, 2).Await(ctx, time.Second)
		require.ErrorIs(t, err, errEven)
		_, err = compat.ExecuteWatchdog(ctx, squareOfOdd, healthy, h.abort, 2, ms).Await(ctx, time.Second)
		require.ErrorIs(t, err, errEven)
		require.Zero(t, h.calls.Load())
	})
}

func TestTheErrorOfAnAbortHandlerIsKept(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := compat.Execute(ctx, obedient, func(context.Context, any) (any, error) { return nil, errStop }, nil)
		_, err := f.Await(ctx, 10*ms)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = f.Await(ctx, 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errStop)
	})
}

func TestWhoWinsARace(t *testing.T) {
	for name, test := range map[string]struct {
		handlers []compat.NoArgHandler
		value    any
		err      error
		took     time.Duration
	}{
		"nobody in time":     {[]compat.NoArgHandler{contender(100*ms, 1, nil), contender(200*ms, 2, nil)}, nil, context.DeadlineExceeded, 50 * ms},
		"the first":          {[]compat.NoArgHandler{contender(ms, 1, nil), contender(20*ms, 2, nil)}, 1, nil, ms},
		"the second":         {[]compat.NoArgHandler{contender(10*ms, 5, nil), contender(2*ms, 2, nil)}, 2, nil, 2 * ms},
		"the first, failing": {[]compat.NoArgHandler{contender(ms, 1, errFirst), contender(20*ms, 2, nil)}, nil, errFirst, ms},
		"a fourth": {[]compat.NoArgHandler{contender(9*ms, 1, nil), contender(8*ms, 2, nil), contender(7*ms, 3, nil),
			contender(ms, 4, nil), contender(6*ms, 5, nil)}, 4, nil, ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				start := time.Now()
				f, err := compat.ExecuteRacer(ctx, test.handlers...)
				require.NoError(t, err)
				v, err := f.Await(ctx, 50*ms)
				tookAbout(t, test.took, start)
				require.ErrorIs(t, err, test.err)
				if test.err == nil {
					require.Equal(t, test.value, v)
				}
			})
		})
	}
}

func TestLosersAreCancelled(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var lost error
		f, err := compat.ExecuteRacer(ctx, func(ctx context.Context) (any, error) {
			return nil, async.Sleep(ctx, ms)
		}, func(ctx context.Context) (any, error) {
			lost = async.Sleep(ctx, time.Hour)
			return nil, lost
		})
		require.NoError(t, err)
		_, err = f.Await(ctx, time.Minute)
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorIs(t, lost, async.ErrDecided)
	})
}

func TestARaceOfNobody(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f, err := compat.ExecuteRacer(ctx)
		require.NoError(t, err)
		_, err = f.Await(ctx, time.Second)
		require.ErrorIs(t, err, async.ErrNoTasks)
	})
}

// poll returns a completion handler that takes 1 ms, counts its calls, and
// ends with err in the call number fails, or without in the call number done.
func poll(calls *int, fails, done int, err error) func(context.Context, any) (bool, any, error) {
	return func(context.Context, any) (bool, any, error) {
		time.Sleep(ms)
		*calls++
		if *calls == fails {
			return false, nil, err
		}
		return *calls == done, *calls, nil
	}
}

func TestWhatAPollComesTo(t *testing.T) {
	for name, test := range map[string]struct {
		fails, done int
		value       any
		err         error
		calls       int
	}{
		"it times out": {0, 100, nil, context.DeadlineExceeded, 5},
		"it fails":     {3, 100, nil, errPoll, 3},
		"it completes": {0, 4, 4, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inRootAndScope(t, func(t *testing.T, ctx context.Context) {
				calls := 0
				v, err := compat.ExecutePolling(ctx, poll(&calls, test.fails, test.done, errPoll), compat.NoAbort, nil, ms).Await(ctx, 9*ms+ms/2)
				require.ErrorIs(t, err, test.err)
				if test.err != nil {
					require.ErrorContains(t, err, test.err.Error())
				}
				require.Equal(t, test.value, v)
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, test.calls, calls, "it does not go on")
			})
		})
	}
}

func TestAPollDoesNotGoOnAfterACancellation(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		calls := 0
		f := compat.ExecutePolling(ctx, poll(&calls, 0, 0, nil), compat.NoAbort, nil, 9*ms)
		time.Sleep(25 * ms)
		cancel(errStop)
		_, err := f.Await(context.WithoutCancel(ctx), time.Minute)
		require.ErrorIs(t, err, errStop)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 3, calls)
	})
}

func healthy(context.Context, any) error { return nil }

func TestWhatAWatchdogComesTo(t *testing.T) {
	for name, test := range map[string]struct {
		handler compat.Handler
		check   error
		value   any
		err     error
		took    time.Duration
	}{
		"it times out":      {deaf(100*ms, 1, nil), nil, nil, context.DeadlineExceeded, 50 * ms},
		"the handler fails": {deaf(5*ms, 0, errMain), nil, nil, errMain, 5 * ms},
		"the check fails":   {deaf(25*ms, 20, nil), errCheck, nil, errCheck, 0},
		"all is well":       {deaf(2*ms, 10, nil), nil, 10, nil, 2 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				start := time.Now()
				v, err := compat.ExecuteWatchdog(ctx, test.handler, func(context.Context, any) error { return test.check },
					compat.NoAbort, nil, ms).Await(ctx, 50*ms)
				tookAbout(t, test.took, start)
				require.ErrorIs(t, err, test.err)
				if test.err == nil {
					require.Equal(t, test.value, v)
				}
			})
		})
	}
}

func TestAFiredWatchdogCancelsTheHandlerAndCallsTheAbortHandler(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		h := new(hook)
		var cause error
		checks := 0
		f := compat.ExecuteWatchdog(ctx, func(ctx context.Context, request any) (any, error) {
			_, cause = obedient(ctx, request)
			return nil, cause
		}, func(_ context.Context, request any) error {
			require.Equal(t, "request", request)
			if checks++; checks == 3 {
				return errCheck
			}
			return nil
		}, h.abort, "request", 10*ms)
		start := time.Now()
		_, err := f.Await(ctx, time.Minute)
		require.Equal(t, errCheck, err)
		tookAbout(t, 20*ms, start)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, async.ErrDecided, cause)
		require.EqualValues(t, 1, h.calls.Load())
		require.Equal(t, "request", h.request.Load())
		require.Equal(t, 3, checks, "none after the future has settled")
	})
}

func TestNoCheckAfterTheHandlerHasEnded(t *testing.T) {
	inRootAndScope(t, func(t *testing.T, ctx context.Context) {
		checks := 0
		_, err := compat.ExecuteWatchdog(ctx, deaf(25*ms, 1, nil), func(context.Context, any) error {
			checks++
			return nil
		}, compat.NoAbort, nil, 10*ms).Await(ctx, time.Minute)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 3, checks)
	})
}

func TestThePanicOfAHandlerWhoseWatchdogHasFiredIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			p, ok := recover().(*async.PanicError)
			require.True(t, ok)
			require.Equal(t, "late", p.Value)
		}()
		_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			_, err := compat.ExecuteWatchdog(ctx, func(ctx context.Context, _ any) (any, error) {
				<-ctx.Done()
				panic("late")
			}, func(context.Context, any) error { return errCheck }, compat.NoAbort, nil, ms).Await(ctx, 0)
			require.Equal(t, errCheck, err)
			return nil
		})
		t.Error("the scope did not panic")
	})
}

func TestAScopeJoinsWhatItsTasksAreDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			_, err := compat.Execute(ctx, deaf(time.Hour, 1, nil), compat.NoAbort, nil).Await(ctx, ms)
			require.ErrorContains(t, err, "deadline exceeded")
			tookAbout(t, ms, start)
			return nil
		}))
		tookAbout(t, time.Hour, start)
	})
}
