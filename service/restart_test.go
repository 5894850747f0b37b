package service_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// supervised is a service that is run again after a second.
func supervised(startup time.Duration, run func(ctx context.Context) error) service.Service {
	return service.Service{Name: "worker", Run: run, Startup: startup, Options: []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})}}
}

// failures are the ways in which a run can fail.
var failures = map[string]func(){
	"error":  func() {},
	"panic":  func() { panic(errPlanted) },
	"Goexit": runtime.Goexit,
}

func TestARestartCountsFromReadyOn(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs := 0
				time.AfterFunc(time.Hour, func() { stop(errStop) })
				require.NoError(t, service.Run(ctx, []service.Service{
					supervised(time.Minute, func(ctx context.Context) error {
						service.Ready(ctx)
						if runs++; runs < 4 {
							fail()
							return errPlanted
						}
						return await(ctx)
					}),
				}))
				assert.Equal(t, 4, runs)
			})
		})
	}
}

func TestAFailureBeforeReadyIsNotRetried(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs := 0
				var err error
				func() {
					defer func() {
						if p, ok := recover().(*async.PanicError); ok {
							err = p
						}
					}()
					err = service.Run(ctx, []service.Service{supervised(time.Minute, func(context.Context) error {
						runs++
						fail()
						return errPlanted
					})})
				}()
				assert.Equal(t, 1, runs)
				if name == "Goexit" {
					require.ErrorIs(t, err, async.ErrGoexit)
				} else {
					require.ErrorIs(t, err, errPlanted)
				}
			})
		})
	}
}

// A run that has failed once may fail before it is ready again: that is a failure
// as any other.
func TestReadyHasBeenCalledOnceForAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		runs := 0
		time.AfterFunc(time.Hour, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			supervised(time.Minute, func(ctx context.Context) error {
				switch runs++; runs {
				case 1:
					service.Ready(ctx)
					return errPlanted
				case 2:
					assert.False(t, service.IsReady(ctx))
					return errPlanted
				}
				service.Ready(ctx)
				assert.True(t, service.IsReady(ctx))
				return await(ctx)
			}),
		}))
		assert.Equal(t, 3, runs)
	})
}

func TestAServiceIsNotReadyBetweenTwoRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		failed := false
		require.NoError(t, service.Run(ctx, []service.Service{
			supervised(0, func(ctx context.Context) error {
				if !failed {
					failed = true
					_ = async.Sleep(ctx, time.Minute)
					return errPlanted
				}
				return await(ctx)
			}),
			{Run: func(ctx context.Context) error {
				time.Sleep(time.Second)
				assert.True(t, service.IsReady(ctx))
				time.Sleep(time.Minute - time.Second/2)
				assert.False(t, service.IsReady(ctx))
				time.Sleep(time.Minute)
				assert.True(t, service.IsReady(ctx))
				stop(errStop)
				return await(ctx)
			}},
		}))
	})
}

func TestTooManyFailuresEndAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "other", Run: await},
			supervised(0, func(context.Context) error { return errPlanted }),
		})
		var given *async.RestartError
		require.ErrorAs(t, err, &given)
		assert.Equal(t, 5, given.Failures)
		require.ErrorIs(t, err, errPlanted)
		assert.Contains(t, err.Error(), "service worker: ")
	})
}

// The turn of a service to stop comes while it waits to be run again. Without a Drain there is
// nothing to do: that it had failed before is no failure of the program, and it is not run again.
func TestAStopBetweenTwoRuns(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				begun, runs := time.Now(), 0
				s := supervised(0, func(context.Context) error {
					runs++
					fail()
					return errPlanted
				})
				s.Options = []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)})}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				require.NoError(t, service.Run(ctx, []service.Service{s}))
				assert.Equal(t, time.Second, time.Since(begun), "the wait is over at once")
				assert.Equal(t, 1, runs)
			})
		})
	}
}

// With a Drain it is run again at once and drained, for something may wait for it. If it fails once more, that is told.
func TestADrainBetweenTwoRuns(t *testing.T) {
	for name, fail := range failures {
		for _, startup := range []time.Duration{0, service.Forever} {
			for _, well := range []bool{true, false} {
				t.Run(fmt.Sprint(name, ", ready at once ", startup == 0, ", ends well ", well), func(t *testing.T) {
					inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
						begun, left := time.Now(), 10
						err := drainedAgain(ctx, stop, startup, fail, well, &left)
						assert.Equal(t, time.Second+time.Minute, time.Since(begun), "the wait is over at once; a minute is what it takes to be ready")
						if well {
							require.NoError(t, err)
							assert.Zero(t, left)
							return
						}
						require.ErrorContains(t, err, "service worker")
						assert.Equal(t, 7, left, "of the first run")
					})
				})
			}
		}
	}
}

// drainedAgain runs a worker that takes three of what is left and fails, and has to wait for an hour then.
// It is told to stop after a second.
func drainedAgain(ctx context.Context, stop context.CancelCauseFunc, startup time.Duration, fail func(), well bool, left *int) (err error) {
	runs, quit := 0, make(chan struct{})
	s := supervised(startup, func(ctx context.Context) error {
		if runs++; runs == 1 {
			service.Ready(ctx)
			*left -= 3
			fail()
			return errPlanted
		}
		if time.Sleep(time.Minute); !well {
			fail()
			return errPlanted
		}
		service.Ready(ctx)
		<-quit
		*left = 0
		return nil
	})
	s.Drain = func(context.Context) error { close(quit); return nil }
	if !well {
		s.Drain = func(context.Context) error { return nil }
	}
	s.Options = []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)})}
	time.AfterFunc(time.Second, func() { stop(errStop) })
	defer func() {
		if p, ok := recover().(*async.PanicError); ok {
			err = p
		}
	}()
	return service.Run(ctx, []service.Service{s}, service.Grace(time.Hour))
}

// The service that another stands on is run again while the other drains: its own turn has not come.
func TestAFailureBeforeTheTurnOfAServiceIsRetried(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				var served atomic.Int32
				runs, quit := 0, make(chan struct{})
				behind := supervised(0, func(ctx context.Context) error {
					if runs++; runs == 1 {
						<-service.Draining(ctx)
						fail()
						return errPlanted
					}
					time.Sleep(time.Minute)
					served.Add(1)
					<-quit
					return nil
				})
				behind.Drain = func(context.Context) error { close(quit); return nil }
				front := service.Service{Name: "front", Run: await, Drain: func(ctx context.Context) error {
					time.Sleep(time.Hour / 2)
					assert.EqualValues(t, 1, served.Load())
					return errors.New("planted: so that front is cancelled")
				}}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				require.ErrorContains(t, service.Run(ctx, []service.Service{behind, front}, service.Grace(time.Hour)), "planted: so that")
				assert.Equal(t, 2, runs)
			})
		})
	}
}

func TestAFailureInTheDrainIsNotRetried(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs, quit := 0, make(chan struct{})
				s := supervised(0, func(ctx context.Context) error {
					runs++
					<-quit
					fail()
					return errPlanted
				})
				s.Drain = func(context.Context) error { close(quit); return nil }
				time.AfterFunc(time.Second, func() { stop(errStop) })
				var err error
				func() {
					defer func() {
						if p, ok := recover().(*async.PanicError); ok {
							err = p
						}
					}()
					err = service.Run(ctx, []service.Service{s})
				}()
				require.Error(t, err)
				assert.Equal(t, 1, runs)
			})
		})
	}
}

func TestARunNeverOverlapsTheOneBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		running, runs := 0, 0
		time.AfterFunc(time.Hour, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{supervised(0, func(ctx context.Context) error {
			running++
			runs++
			assert.Equal(t, 1, running)
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute) // slow to end
				running--
				return nil
			})
			if runs == 3 {
				return await(ctx)
			}
			return errPlanted
		})}, service.Grace(time.Hour)))
		assert.Equal(t, 3, runs)
		synctest.Wait()
		assert.Zero(t, running)
	})
}

func TestOptionsAreThoseOfTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		aborted := false
		err := service.Run(ctx, []service.Service{
			{Name: "other", Run: await},
			{Name: "x", Run: await, Options: []async.TaskOption{
				async.Name("named otherwise"),
				async.Timeout(time.Second),
				async.OnAbort(func(context.Context, error) error { aborted = true; return nil }),
			}},
		})
		var limit *async.TimeoutError
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, "named otherwise", limit.Task)
		assert.True(t, aborted)
	})
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		begun := time.Now()
		require.NoError(t, service.Run(ctx, []service.Service{
			{Name: "other", Run: await},
			{Name: "x", Run: func(ctx context.Context) error { return async.Sleep(ctx, time.Second) },
				Options: []async.TaskOption{async.Leader(), async.Daemon()}},
		}))
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

func TestAnErrorOfAServiceMayBeAnything(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "other", Run: func(ctx context.Context) error { <-ctx.Done(); return uncomparable{[]int{1}} }},
			{Name: "x", Run: func(context.Context) error { synctest.Wait(); return uncomparable{[]int{2}} }},
		})
		require.EqualError(t, err, "service x: uncomparable\n\tservice other: uncomparable")
		assert.False(t, errors.Is(err, errPlanted))
	})
}

type uncomparable struct{ list []int }

func (uncomparable) Error() string { return "uncomparable" }

// An executor that runs nothing before it is told to.
type slowPool struct{ tasks chan func() }

func (l slowPool) Execute(task func()) error { l.tasks <- task; return nil }

func TestWhatHasNotRunWhenTheDrainBeginsIsNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		l := slowPool{make(chan func(), 1)}
		require.NoError(t, service.Run(ctx, []service.Service{
			{
				Run:     func(context.Context) error { t.Error("it was run"); return nil },
				Drain:   func(context.Context) error { t.Error("it was drained"); return nil },
				Options: []async.TaskOption{async.On(l)},
			},
			{Run: func(ctx context.Context) error {
				stop(errStop)
				<-service.Draining(ctx)
				go (<-l.tasks)()
				return await(ctx)
			}},
		}))
	})
}

// The turn of a service to stop comes while what a failed run has started still ends: a failure that is
// not to be retried is told, and Run is not called again.
func TestAFailureThatIsFinalIsNotTakenForAPause(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		options []async.TaskOption
	}{
		"without Restart": {errPlanted, nil},
		"Final":           {async.Final(errPlanted), restarts(0)},
		"too often":       {errPlanted, restarts(1)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs := 0
				s := service.Service{Name: "worker", Options: c.options, Drain: func(context.Context) error { return nil }}
				s.Run = func(ctx context.Context) error {
					runs++
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
					return c.err
				}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				require.ErrorIs(t, service.Run(ctx, []service.Service{s}, service.Grace(time.Hour)), errPlanted)
				assert.Equal(t, 1, runs)
			})
		})
	}
}

func restarts(attempts int) []async.TaskOption {
	return []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour), Attempts: attempts})}
}

// A service that was started again, and is not ready within its Startup when it is to be drained, is cancelled, and
// that is told; what is in front of it in the slice has its turn.
func TestAServiceThatIsNotReadyAgainHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun, runs, drained := time.Now(), 0, false
		store := service.Service{Name: "store", Run: await, Drain: func(context.Context) error { drained = true; return errPlanted }}
		worker := service.Service{Name: "worker", Startup: time.Minute, Drain: func(context.Context) error { return nil }, Options: restarts(0)}
		worker.Run = func(ctx context.Context) error {
			if runs++; runs == 1 {
				service.Ready(ctx)
				return errPlanted
			}
			return await(ctx)
		}
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{store, worker}, service.Grace(time.Hour))
		var late *async.TimeoutError
		require.ErrorAs(t, err, &late)
		assert.Equal(t, "service worker: startup", late.Task)
		assert.True(t, drained)
		assert.Equal(t, time.Second+time.Minute, time.Since(begun))
	})
}
