package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
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

// everySecond is what most tests of pairs restart with.
var everySecond = async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})

func TestARunThatFailsIsFollowedByAnother(t *testing.T) {
	for name, start := range restartable {
		for how, end := range ends {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					f, runs := failing(3, end)
					require.NoError(t, start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})))
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
				require.NoError(t, start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})))
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
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
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
				}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Join(ctx)
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
			require.Equal(t, errRun, context.Cause(before))
			return nil
		}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Join(ctx)
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
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
					return nil
				}))
				require.Equal(t, 4, runs)
			})
		})
	}
}

// TestAnInnerTaskThatIsGivenUpIsAFailureOfTheOuterRun.
func TestAnInnerTaskThatIsGivenUpIsAFailureOfTheOuterRun(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		outer, inner := 0, 0
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				outer++
				async.Go(ctx, func(context.Context) error { inner++; return errRun },
					async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2}), async.Name("inner"))
				<-ctx.Done()
				return nil
			}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}), async.Name("outer"))
			return nil
		})
		require.Equal(t, 3, outer)
		require.Equal(t, 6, inner)
		require.EqualError(t, err, "async: outer: given up after 3 failures within 1m0s; last failure: inner: given up after 2 failures within 1m0s; last failure: the run failed")
	})
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
		}, async.Restart(async.RestartPolicy{Interval: func(n int) time.Duration { asked = append(asked, n); return time.Second }})).Join(ctx)
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
		}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3, Within: time.Hour, Healthy: 3 * time.Second})).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Equal(t, 3, runs)
	})
}

func TestRestartSaysWhereItDoesNotApply(t *testing.T) {
	ctx := asynctest.Context(t)
	probe := func(context.Context) (int, bool, error) { return 0, true, nil }
	for text, f := range map[string]func(){
		"async: a poll with Restart: it calls its probe again and again anyway; see Tolerate and Again": func() {
			async.Poll(ctx, async.Every(time.Second), probe, everySecond)
		},
		"async: Watch with Restart: call Watch in the handler of a task with Restart, and await it there": func() {
			async.Watch(ctx, answer, async.Every(time.Second), nothing, everySecond)
		},
		"async: NewPromise with Restart: nothing runs for a promise": func() {
			async.NewPromise[int](ctx, everySecond)
		},
		"async: Restart with a nil interval: use Every, Backoff or a function of your own": func() { async.Restart(async.RestartPolicy{}) },
		"async: Restart with a negative Healthy: a task that fails at once would never be given up": func() {
			async.Restart(async.RestartPolicy{Interval: async.Every(1), Healthy: -1})
		},
		"async: Restart with negative Attempts: for no limit set Within to -1": func() {
			async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: -1})
		},
	} {
		require.PanicsWithValue(t, text, f)
	}
}

// TestWhatGoesWrongInTheIntervalEndsTheTask, with the failure it was asked about.
func TestWhatGoesWrongInTheIntervalEndsTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(100, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: func(int) time.Duration { panic("interval") }})).Join(ctx)
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "interval", p.Value)
		require.ErrorIs(t, everythingIn(err), errRun)
		require.EqualValues(t, 1, runs.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, _ := failing(100, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: func(int) time.Duration { runtime.Goexit(); return 0 }})).Join(ctx)
		require.ErrorIs(t, err, async.ErrGoexit)
		require.ErrorIs(t, err, errRun)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		value := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f, _ := failing(100, nil)
				async.Go(ctx, f, async.Restart(async.RestartPolicy{Interval: func(int) time.Duration { panic("interval") }}))
				return nil
			})
		})
		require.IsType(t, new(async.PanicError), value)
	})
}

type rudeError struct{}

func (rudeError) Error() string { panic("Error") }
func (rudeError) Unwrap() error { panic("Unwrap") }
func (rudeError) As(any) bool   { panic("As") }
func (rudeError) Is(error) bool { panic("Is") }

type listError struct{ list []int }

func (listError) Error() string { return "not comparable" }

// TestAnErrorWhoseMethodsPanicIsAFailureAsAnyOther.
func TestAnErrorWhoseMethodsPanicIsAFailureAsAnyOther(t *testing.T) {
	for name, err := range map[string]error{"rude": rudeError{}, "not comparable": listError{[]int{1}}, "joined": errors.Join(errRun, rudeError{})} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				_, got := async.Start(ctx, func(context.Context) error { runs++; return err }, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Join(ctx)
				require.Equal(t, 5, runs)
				var e *async.RestartError
				require.True(t, errors.As(got, &e))
				require.Contains(t, e.Error(), "given up after 5 failures")
			})
		})
	}
}

// TestATaskThatIsToldToStopHasTheOutcomeThatItWouldHaveWithoutRestart: whatever
// its handler does then, whoever is told, and whichever way it is told to stop.
func TestATaskThatIsToldToStopHasTheOutcomeThatItWouldHaveWithoutRestart(t *testing.T) {
	said := errors.New("said as it stopped")
	handlers := map[string]func(ctx context.Context) error{
		"returns nil":      func(ctx context.Context) error { untilStopped(ctx); return nil },
		"returns why":      func(ctx context.Context) error { untilStopped(ctx); return ctx.Err() },
		"returns cause":    func(ctx context.Context) error { untilStopped(ctx); return context.Cause(ctx) },
		"wraps why":        func(ctx context.Context) error { untilStopped(ctx); return fmt.Errorf("page 7: %w", ctx.Err()) },
		"says more":        func(ctx context.Context) error { untilStopped(ctx); return said },
		"is final":         func(ctx context.Context) error { untilStopped(ctx); return async.Final(said) },
		"panics":           func(ctx context.Context) error { untilStopped(ctx); panic(said) },
		"Goexit":           func(ctx context.Context) error { untilStopped(ctx); runtime.Goexit(); return nil },
		"a task says more": func(ctx context.Context) error { return inTask(ctx, said) },
		"a task and itself": func(ctx context.Context) error {
			_ = inTask(ctx, errPlanted)
			time.Sleep(time.Millisecond) // so that it is the second to fail
			return said
		},
		"a scope says more": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { return inTask(ctx, said) })
		},
		"a hook says more": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return said })
			untilStopped(ctx)
			return ctx.Err()
		},
		"a future nobody awaits": func(ctx context.Context) error {
			async.Start(ctx, func(context.Context) error { return said })
			untilStopped(ctx)
			return nil
		},
	}
	for name, handler := range handlers {
		for how, program := range stoppedPrograms {
			for kind, opts := range map[string][]async.TaskOption{
				"plain": nil, "daemon": {async.Daemon()}, "hook": {async.OnAbort(func(context.Context, error) error { return errHookBoom })},
			} {
				t.Run(name+"/"+how+"/"+kind, func(t *testing.T) {
					outcome := func(opts ...async.TaskOption) (text string) {
						inBubble(t, func(t *testing.T, ctx context.Context) {
							var err error
							if value := panicFrom(func() { err = program(ctx, handler, append(opts, async.Name("w"))) }); value != nil {
								err, _ = value.(error)
								text = "panics with "
							}
							if err != nil {
								text += err.Error()
							}
							text, _, _ = strings.Cut(text, "\n\ngoroutine") // the stacks differ
						})
						return text
					}
					again := outcome(append(opts, everySecond)...)
					daemon := (kind == "daemon" || how == "Go dismissed") && slices.Contains(stoppedByOwner, how)
					switch {
					case daemon && kind == "hook" && slices.Contains(saidBelow, name): // the handler has returned a list
						require.Contains(t, again, errHookBoom.Error())
					case daemon && kind != "hook" && slices.Contains(saidByTasks, name): // the handler has returned it
						require.NotContains(t, again, said.Error())
					default:
						require.Equal(t, outcome(opts...), again)
					}
				})
			}
		}
	}
}

// saidByTasks are the handlers whose tasks say more. For a task with Restart that is what a
// run returns, so of a daemon that was told to stop it does not count.
var (
	saidByTasks    = []string{"a task says more", "a task and itself", "a future nobody awaits"}
	saidBelow      = append(slices.Clone(saidByTasks), "a scope says more")
	stoppedByOwner = []string{"Go in a scope that is done", "Go dismissed", "Go beside a failure", "Start, unclaimed"}
)

func inTask(ctx context.Context, err error) error {
	async.Go(ctx, func(ctx context.Context) error { untilStopped(ctx); return err })
	untilStopped(ctx)
	return ctx.Err()
}

// stoppedPrograms start f, tell it to stop, and return what comes of it.
var stoppedPrograms = map[string]func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error{
	"Go in a scope that is done": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errPlanted) })
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, opts...)
			<-ctx.Done()
			return nil
		})
	},
	"Go with its own timeout": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, append(opts, async.Timeout(time.Second))...)
			return async.Sleep(ctx, time.Minute)
		})
	},
	"Go dismissed": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, append(opts, async.Daemon())...)
			return async.Sleep(ctx, time.Second)
		})
	},
	"Go beside a failure": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, opts...)
			return async.Sleep(ctx, time.Second)
		}, async.Timeout(time.Millisecond))
	},
	"Go with a ctx of its own": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			own, cancel := context.WithTimeoutCause(ctx, time.Second, errPlanted)
			defer cancel()
			async.Go(own, f, opts...)
			return async.Sleep(ctx, time.Minute)
		})
	},
	"Start, cancelled": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		w := async.Start(ctx, f, opts...)
		time.Sleep(time.Second)
		w.Cancel(errPlanted)
		_, err := w.Join(ctx)
		return err
	},
	"Start, expired": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		w := async.Start(ctx, f, opts...)
		_, err := w.Await(ctx, time.Second)
		_, later := w.Join(ctx)
		return errors.Join(err, later)
	},
	"Start, unclaimed": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errPlanted) })
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Start(ctx, f, opts...)
			<-ctx.Done()
			return nil
		})
	},
	"Start, skipped in the queue": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		ctx, cancel := context.WithCancelCause(ctx)
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
			synctest.Wait()
			w := async.Start(ctx, f, opts...)
			cancel(errPlanted)
			_, err := w.Join(ctx)
			if err == nil {
				return errors.New("it was called")
			}
			return nil
		}, async.Limit(1))
	},
	"Start under a limit": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			w := async.Start(ctx, f, opts...)
			_ = async.Sleep(ctx, time.Second)
			w.Cancel(errPlanted)
			_, err := w.Join(ctx)
			return err
		}, async.Limit(1))
	},
}
