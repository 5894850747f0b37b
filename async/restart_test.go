package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

var errRun = errors.New("the run failed")

// ends are the ways in which a run fails.
var ends = map[string]func(){
	"error":    nil,
	"panic":    func() { panic(errRun) },
	"goexit":   runtime.Goexit,
	"nilpanic": func() { panic(nil) }, //nolint:govet // of old
}

// failing returns a handler that fails n times in that way, then returns nil, and
// the number of its runs.
func failing(n int32, end func()) (func(context.Context) error, *atomic.Int32) {
	runs := new(atomic.Int32)
	return func(context.Context) error {
		switch {
		case runs.Add(1) > n:
			return nil
		case end != nil:
			end()
		}
		return errRun
	}, runs
}

// restartable are the functions that Restart is an option of, as one that waits
// for what it has started.
var restartable = map[string]func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error{
	"Go": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, f, opts...); return nil })
	},
	"Start": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error {
		_, err := async.Start(ctx, f, opts...).Join(ctx)
		return err
	},
	"Execute": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error {
		v, err := async.Execute(ctx, func(ctx context.Context) (int, error) { return 42, f(ctx) }, opts...).Join(ctx)
		if err == nil && v != 42 {
			return fmt.Errorf("the value is %d", v)
		}
		return err
	},
}

func TestARunThatFailsIsFollowedByAnother(t *testing.T) {
	for name, start := range restartable {
		for how, end := range ends {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					f, runs := failing(3, end)
					require.NoError(t, start(ctx, f, async.Restart(async.Every(time.Second))))
					require.EqualValues(t, 4, runs.Load())
					require.Equal(t, 3*time.Second, time.Since(begin))
				})
			})
		}
	}
}

func TestARunThatReturnsNilIsTheLast(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				f, runs := failing(0, nil)
				require.NoError(t, start(ctx, f, async.Restart(async.Every(time.Second))))
				require.EqualValues(t, 1, runs.Load())
			})
		})
	}
}

func TestAFinalFailureIsNotRetried(t *testing.T) {
	for name, start := range restartable {
		for how, fail := range map[string]func() error{
			"itself":  func() error { return async.Final(errRun) },
			"wrapped": func() error { return fmt.Errorf("x: %w", async.Final(errRun)) },
			"joined":  func() error { return errors.Join(errPlanted, async.Final(errRun)) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					runs := 0
					err := start(ctx, func(context.Context) error {
						if runs++; runs < 3 {
							return errPlanted
						}
						return fail()
					}, async.Restart(async.Every(time.Second)))
					require.ErrorIs(t, err, errRun)
					require.Equal(t, 3, runs)
					require.Equal(t, how == "itself", err == errRun)
					require.False(t, errors.As(err, new(*async.RestartError)))
				})
			})
		}
	}
	require.NoError(t, async.Final(nil))
	require.ErrorIs(t, async.Final(errRun), errRun)
	require.EqualError(t, async.Final(errRun), errRun.Error())
}

func TestTheLimitOfFailuresEndsATaskWithTheLast(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				err := start(ctx, func(context.Context) error { runs++; return fmt.Errorf("%w: %d", errRun, runs) },
					async.Restart(async.Every(time.Second), async.Attempts(3)), async.Name("worker"))
				require.Equal(t, 3, runs)
				var e *async.RestartError
				require.ErrorAs(t, err, &e)
				require.Equal(t, 3, e.Failures)
				require.ErrorIs(t, err, errRun)
				require.EqualError(t, err, "async: worker: given up after 3 failures within 1m0s; last failure: the run failed: 3")
			})
		})
	}
}

func TestTheDefaultIsFiveFailuresInAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(1000, nil)
		_, err := async.Start(ctx, f, async.Restart(async.Every(14*time.Second))).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.EqualValues(t, 5, runs.Load())
		f, runs = failing(99, nil)
		_, err = async.Start(ctx, f, async.Restart(async.Every(16*time.Second))).Join(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 100, runs.Load())
	})
}

// TestAWindowForgets: two quick failures, then a pause; it is only the third
// within the window that counts.
func TestAWindowForgets(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var asked []int
		waits := []time.Duration{1, 20, 1, 20, 1, 1}
		f, runs := failing(1000, nil)
		_, err := async.Start(ctx, f, async.Name("w"), async.Restart(func(n int) time.Duration {
			asked = append(asked, n)
			return waits[n-1] * time.Second
		}, async.Attempts(3), async.Within(10*time.Second))).Join(ctx)
		require.EqualValues(t, 7, runs.Load())
		require.Equal(t, []int{1, 2, 3, 4, 5, 6}, asked)
		require.EqualError(t, err, "async: w: given up after 7 failures, 3 of them within 10s; last failure: the run failed")
	})
}

func TestWithin0IsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(10_000, nil)
		_, err := async.Start(ctx, f, async.Restart(async.Every(0), async.Within(0))).Join(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 10_001, runs.Load())
	})
}

func TestAStormOfRestartsIsBounded(t *testing.T) {
	for name, in := range map[string]async.Interval{
		"zero":     async.Every(0),
		"negative": async.Every(-time.Hour),
		"backoff":  async.Backoff(0, 0),
		"jitter":   async.Jitter(1, async.Every(0)),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				f, runs := failing(100, nil)
				_, err := async.Start(ctx, f, async.Restart(in, async.Within(0))).Join(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 101, runs.Load())
				require.Equal(t, 100*time.Millisecond, time.Since(begin))
			})
		})
	}
}

func TestTheBackoffGrowsUntilARunWasHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var asked []int
		runs := 0
		lasts := []time.Duration{0, 0, 59, 0, 60, 0, 0}
		_, err := async.Start(ctx, func(ctx context.Context) error {
			if runs++; runs > len(lasts) {
				return nil
			}
			_ = async.Sleep(ctx, lasts[runs-1]*time.Second)
			return errRun
		}, async.Restart(func(n int) time.Duration { asked = append(asked, n); return time.Second })).Join(ctx)
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3, 4, 1, 2, 3}, asked)
	})
}

// TestAHealthyRunIsOneWhoseHandlerLasted: that what it left behind takes long
// does not make a run healthy that failed at once.
func TestAHealthyRunIsOneWhoseHandlerLasted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		runs := 0
		_, err := async.Start(ctx, func(ctx context.Context) error {
			runs++
			async.Go(ctx, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
			return errRun
		}, async.Restart(async.Every(time.Second), async.Attempts(3), async.Within(time.Hour), async.Healthy(3*time.Second))).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Equal(t, 3, runs)
	})
}

func TestTheNextRunStartsWhenAllOfTheLastHasEnded(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var busy atomic.Int32
				runs := 0
				enter := func() { require.EqualValues(t, 1, busy.Add(1), "runs overlap") }
				_, err := async.Start(ctx, func(ctx context.Context) error {
					enter()
					async.OnExit(ctx, func(ctx context.Context, outcome error) error {
						require.Equal(t, runs < 4, outcome != nil)
						time.Sleep(time.Second)
						busy.Add(-1)
						return nil
					})
					async.Go(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
						<-ctx.Done()
						return nil
					}, async.Daemon())
					if runs++; runs == 4 {
						return nil
					}
					if end != nil {
						end()
					}
					return errRun
				}, async.Restart(async.Every(time.Second))).Join(ctx)
				require.NoError(t, err)
				require.Zero(t, busy.Load())
			})
		})
	}
}

func TestEachRunHasAContextOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var before context.Context
		_, err := async.Start(ctx, func(ctx context.Context) error {
			require.NoError(t, ctx.Err())
			if before == nil {
				before = ctx
				return errRun
			}
			require.Equal(t, async.ErrScopeEnded, context.Cause(before))
			return nil
		}, async.Restart(async.Every(time.Second))).Join(ctx)
		require.NoError(t, err)
	})
}

// TestAForeignDeadlineIsAFailureAsAnyOther: whether the task was told to stop is
// asked of its own context.
func TestAForeignDeadlineIsAFailureAsAnyOther(t *testing.T) {
	for name, err := range map[string]error{"deadline": context.DeadlineExceeded, "canceled": context.Canceled, "ended": async.ErrScopeEnded} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error {
						if runs++; runs < 4 {
							return fmt.Errorf("call: %w", err)
						}
						return nil
					}, async.Restart(async.Every(time.Second)))
					return nil
				}))
				require.Equal(t, 4, runs)
			})
		})
	}
}

// stops are the ways in which a task is told to stop.
var stops = map[string]func(f *async.Future[struct{}], cancel context.CancelCauseFunc){
	"Cancel": func(f *async.Future[struct{}], _ context.CancelCauseFunc) { f.Cancel(errPlanted) },
	"ctx":    func(_ *async.Future[struct{}], cancel context.CancelCauseFunc) { cancel(errPlanted) },
}

func TestItsOwnCancellationEndsATask(t *testing.T) {
	for name, stop := range stops {
		for when, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
			for how, hidden := range map[string]error{"says so": nil, "says something else": errRun} {
				t.Run(name+"/"+when+"/"+how, func(t *testing.T) {
					inBubble(t, func(t *testing.T, ctx context.Context) {
						own, cancel := context.WithCancelCause(ctx)
						runs := 0
						f := async.Start(own, func(ctx context.Context) error {
							if runs++; runs == 1 {
								return errRun
							}
							if err := async.Sleep(ctx, lasts); err != nil && hidden == nil {
								return err
							}
							return errRun
						}, async.Restart(async.Every(time.Minute)))
						time.Sleep(90 * time.Second)
						begin := time.Now()
						stop(f, cancel)
						_, err := f.Join(ctx)
						tookAbout(t, 0, begin)
						require.ErrorIs(t, err, errPlanted)
						require.ErrorIs(t, err, context.Canceled)
						require.ErrorIs(t, err, errRun, "the last failure")
						require.Equal(t, 2, runs)
					})
				})
			}
		}
	}
}

func TestASiblingHearsNothingOfAFailureThatIsRetried(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					f, _ := failing(4, end)
					async.Go(ctx, f, async.Restart(async.Every(time.Second)))
					async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
					return nil
				}, async.OnFailure(func(err error) error { t.Errorf("told of %v", err); return err })))
			})
		})
	}
}

func TestObserversSeeEveryRun(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var seen []string
		err := async.Scope(ctx, func(ctx context.Context) error {
			runs := 0
			async.Go(ctx, func(context.Context) error {
				switch runs++; runs {
				case 1:
					return errRun
				case 2:
					panic("two")
				case 3:
					runtime.Goexit()
				}
				return errPlanted
			}, async.Restart(async.Every(time.Second), async.Attempts(4)), async.Name("w"))
			return nil
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			text := fmt.Sprintf("%v %s", e.Kind, e.Task)
			if e.Err != nil {
				text += fmt.Sprintf(" %T", e.Err)
			}
			seen = append(seen, text)
		})))
		require.ErrorIs(t, err, errPlanted)
		require.Equal(t, []string{
			"start w", "end w *errors.errorString",
			"start w", "panic w *async.PanicError", "end w *async.PanicError",
			"start w", "end w *errors.errorString",
			"start w", "end w *errors.errorString",
		}, seen)
	})
}

func TestOnlyTheLastFailureReachesTheScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var told []error
		err := async.Scope(ctx, func(ctx context.Context) error {
			f, _ := failing(100, nil)
			async.Go(ctx, f, async.Restart(async.Every(time.Second), async.Attempts(3)))
			return nil
		}, async.OnFailure(func(err error) error { told = append(told, err); return nil }))
		require.NoError(t, err)
		require.Len(t, told, 1)
		require.ErrorAs(t, told[0], new(*async.RestartError))
	})
}

func TestTheLastPanicIsRaisedAsThatOfAnyTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(100, ends["panic"])
		var stopped time.Duration
		begin := time.Now()
		value := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(own context.Context) error {
					async.Go(own, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
					return f(ctx)
				}, async.Restart(async.Every(time.Second), async.Attempts(3), async.Within(24*time.Hour)), async.Name("w"))
				<-ctx.Done()
				stopped = time.Since(begin)
				return nil
			})
		})
		require.EqualValues(t, 3, runs.Load())
		p, ok := value.(*async.PanicError)
		require.True(t, ok)
		require.Equal(t, errRun, p.Value)
		require.Equal(t, "w", p.Task)
		require.Equal(t, 12*time.Second, stopped, "at once, not when its tasks have ended")
		var e *async.RestartError
		require.ErrorAs(t, p, &e)
		require.Equal(t, 3, e.Failures)
		require.Contains(t, p.Error(), "given up after 3 failures within 24h0m0s")
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // and so OnPanic is asked about it, with the count
		f, _ := failing(100, ends["panic"])
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, async.Restart(async.Every(time.Second), async.Attempts(3)))
			return nil
		}, async.OnPanic(func(p *async.PanicError) error {
			var e *async.RestartError
			require.ErrorAs(t, p, &e)
			require.Equal(t, 3, e.Failures)
			return errPlanted
		})), errPlanted)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // a Final one has no count
		value := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { panic(async.Final(errRun)) }, everySecond)
				return nil
			})
		})
		require.IsType(t, new(async.PanicError), value)
		require.ErrorIs(t, value.(error), errRun)
		require.False(t, errors.As(value.(error), new(*async.RestartError)))
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, _ := failing(100, ends["panic"])
		_, err := async.Start(ctx, f, async.Restart(async.Every(time.Second), async.Attempts(3))).Join(ctx)
		require.IsType(t, new(async.PanicError), err)
		require.ErrorIs(t, err, errRun)
	})
}

func TestTheLastGoexitIsToldWithACount(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				f, _ := failing(100, runtime.Goexit)
				err := start(ctx, f, async.Restart(async.Every(time.Second), async.Attempts(2)))
				require.ErrorIs(t, err, async.ErrGoexit)
				var e *async.RestartError
				require.ErrorAs(t, err, &e)
				require.Equal(t, 2, e.Failures)
			})
		})
	}
}
