package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// everySecond is what most tests of pairs restart with.
var everySecond = async.Restart(async.Every(time.Second))

// TestBetweenRunsATaskHoldsNoSlot: another task has it then, and the next run waits
// for that.
func TestBetweenRunsATaskHoldsNoSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var busy atomic.Int32
		var log []string
		work := func(name string, d time.Duration) {
			require.EqualValues(t, 1, busy.Add(1))
			log = append(log, fmt.Sprintf("%s at %v", name, time.Since(begin)))
			time.Sleep(d)
			busy.Add(-1)
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			runs := 0
			async.Go(ctx, func(context.Context) error {
				work("worker", 0)
				if runs++; runs < 3 {
					return errRun
				}
				return nil
			}, everySecond)
			synctest.Wait()
			async.Go(ctx, func(context.Context) error { work("other", 5*time.Second); return nil })
			return nil
		}, async.Limit(1)))
		require.Equal(t, []string{"worker at 0s", "other at 0s", "worker at 5s", "worker at 6s"}, log)
	})
}

// TestARunIsAsDeepAsItsTask: it starts after what queues deeper, and in its turn
// among its like.
func TestARunIsAsDeepAsItsTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error { order = append(order, name); return nil }
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, note("deeper"))
				time.Sleep(time.Second)
				return nil
			})
			synctest.Wait()
			async.Go(ctx, note("before"))
			async.Go(ctx, note("restarted"), everySecond)
			async.Go(ctx, note("behind"))
			async.Go(ctx, note("urgent"), everySecond, async.Priority(1))
			return nil
		}, async.Limit(1)))
		require.Equal(t, []string{"deeper", "urgent", "before", "restarted", "behind"}, order)
	})
}

func TestATaskThatQueuesForItsNextRunIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			f, runs := failing(100, nil)
			w := async.Start(ctx, f, everySecond)
			synctest.Wait()
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
			time.Sleep(2 * time.Second)
			require.Equal(t, async.Running, w.State())
			require.True(t, w.Cancel(errPlanted))
			_, err, ok := w.Result()
			require.True(t, ok, "at once")
			require.ErrorIs(t, err, errPlanted)
			require.EqualValues(t, 1, runs.Load())
			return nil
		}, async.Limit(1))
	})
}

// refusing is an executor that refuses what odd says.
type refusing struct{ refuse func(n int32) bool }

var errRefused = errors.New("full")

func (r *refusing) executor() (async.Executor, *atomic.Int32) {
	asked := new(atomic.Int32)
	return executorFunc(func(task func()) error {
		if r.refuse(asked.Add(1)) {
			return errRefused
		}
		go task()
		return nil
	}), asked
}

type executorFunc func(func()) error

func (f executorFunc) Execute(task func()) error { return f(task) }

func TestEachRunIsHandedToTheExecutor(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ex, asked := (&refusing{func(n int32) bool { return n == 1 || n == 3 }}).executor()
		f, runs := failing(2, nil)
		_, err := async.Start(ctx, f, everySecond, async.On(ex)).Join(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 3, runs.Load())
		require.EqualValues(t, 5, asked.Load(), "that it was refused is a failure of a run")
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ex, asked := (&refusing{func(int32) bool { return true }}).executor()
		f, _ := failing(0, nil)
		_, err := async.Start(ctx, f, everySecond, async.On(ex)).Join(ctx)
		require.ErrorAs(t, err, new(*async.RejectedError))
		require.ErrorAs(t, err, new(*async.RestartError))
		require.EqualValues(t, 5, asked.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // inline, under a limit
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			for range 3 {
				f, _ := failing(3, runtime.Goexit)
				async.Go(ctx, f, everySecond, async.On(executorFunc(func(task func()) error { go task(); return nil })))
			}
			return nil
		}, async.Limit(1)))
	})
}

// TestARunThatAnExecutorHasDroppedIsCancelled: the first one and a later one.
func TestARunThatAnExecutorHasDroppedIsCancelled(t *testing.T) {
	for name, kept := range map[string]int32{"first": 0, "later": 2} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var n atomic.Int32
				f, runs := failing(100, nil)
				w := async.Start(ctx, f, everySecond, async.On(executorFunc(func(task func()) error {
					if n.Add(1) <= kept {
						go task()
					}
					return nil
				})))
				time.Sleep(time.Minute)
				w.Cancel(errPlanted)
				_, err, ok := w.Result()
				require.True(t, ok)
				require.ErrorIs(t, err, errPlanted)
				require.Equal(t, kept, runs.Load())
			})
		})
	}
}

func TestTimeoutBoundsTheWhole(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				runs := 0
				_, err := async.Start(ctx, func(ctx context.Context) error {
					deadline, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, begin.Add(10*time.Second), deadline)
					if runs++; runs == 1 {
						return errRun
					}
					return async.Sleep(ctx, lasts)
				}, async.Restart(async.Every(7*time.Second)), async.Timeout(10*time.Second), async.Name("w")).Join(ctx)
				if lasts == 0 {
					require.NoError(t, err)
					return
				}
				tookAbout(t, 10*time.Second, begin)
				var limit *async.TimeoutError
				require.ErrorAs(t, err, &limit)
				require.Equal(t, "w", limit.Task)
				require.ErrorIs(t, err, errRun)
				require.EqualError(t, err, "async: w: stopped after 1 failure: context deadline exceeded (limit 10s, waited 10s); last failure: the run failed")
			})
		})
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		f, runs := failing(100, nil)
		_, err := async.Start(ctx, f, async.Restart(async.Every(7*time.Second)), async.Timeout(10*time.Second)).Join(ctx)
		tookAbout(t, 10*time.Second, begin)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 2, runs.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(100, nil)
		_, err := async.Start(ctx, f, everySecond, async.Timeout(-1)).Join(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, runs.Load(), "as without Restart it is called with a ctx that is done")
	})
}

// TestAMissedBeatFailsARun: whatever the handler returns then. Each run has all of
// its time to beat.
func TestAMissedBeatFailsARun(t *testing.T) {
	for name, returned := range map[string]func(ctx context.Context) error{
		"why":   func(ctx context.Context) error { return ctx.Err() },
		"nil":   func(context.Context) error { return nil },
		"other": func(context.Context) error { return errPlanted },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				hooks, runs := 0, 0
				start := func() *async.Future[struct{}] {
					return async.Start(ctx, func(ctx context.Context) error {
						runs++
						for range 3 {
							async.Beat(ctx)
							time.Sleep(time.Second)
						}
						<-ctx.Done()
						return returned(ctx)
					}, everySecond, async.Heartbeat(2*time.Second), async.OnAbort(func(_ context.Context, cause error) error {
						require.ErrorIs(t, cause, async.ErrNoBeat)
						hooks++
						return nil
					}))
				}
				_, err := start().Join(ctx)
				_ = begin
				require.ErrorAs(t, err, new(*async.RestartError))
				if name == "other" {
					require.ErrorIs(t, err, errPlanted)
				}
				require.ErrorIs(t, err, async.ErrNoBeat)
				require.Equal(t, 5, runs)
				require.Equal(t, 5, hooks)
			})
		})
	}
}

// TestTheAbortHookIsCalledInARun: once, and not between runs.
func TestTheAbortHookIsCalledInARun(t *testing.T) {
	for name, stop := range stops {
		for when, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
			t.Run(name+"/"+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					own, cancel := context.WithCancelCause(ctx)
					var hooks atomic.Int32
					f := async.Start(own, func(ctx context.Context) error {
						_ = async.Sleep(ctx, lasts)
						return errRun
					}, async.Restart(async.Every(time.Minute)), async.OnAbort(func(_ context.Context, cause error) error {
						require.Equal(t, errPlanted, cause)
						hooks.Add(1)
						return nil
					}))
					time.Sleep(30 * time.Second)
					stop(f, cancel)
					_, err := f.Join(ctx)
					require.ErrorIs(t, err, errPlanted)
					want := int32(0)
					if lasts > 0 {
						want = 1
					}
					require.Equal(t, want, hooks.Load())
				})
			})
		}
	}
}

// TestEveryValueIsGivenOrDiscarded: those of runs that failed although their
// handlers returned a value, and one that comes too late.
func TestEveryValueIsGivenOrDiscarded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var discarded []int
		runs := 0
		v, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			if runs++; runs == 2 {
				return 2, errRun // a value beside an error is the waiter's, as ever; here there is none
			}
			if runs < 4 {
				async.Go(ctx, func(context.Context) error { return errRun })
			}
			return runs, nil
		}, everySecond, async.OnDiscard(func(n int) { discarded = append(discarded, n) })).Join(ctx)
		require.NoError(t, err)
		require.Equal(t, 4, v)
		require.Equal(t, []int{1, 3}, discarded)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var discarded []int
		f := async.Execute(ctx, func(context.Context) (int, error) { time.Sleep(time.Second); return 1, nil },
			everySecond, async.OnDiscard(func(n int) { discarded = append(discarded, n) }))
		f.Cancel(errPlanted)
		_, err := f.Join(ctx)
		require.ErrorIs(t, err, errPlanted)
		require.Equal(t, []int{1}, discarded)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // a value of an earlier run is not the last one's
		runs := 0
		v, err := async.Execute(ctx, func(context.Context) (int, error) {
			if runs++; runs == 1 {
				return 1, errRun
			}
			panic(errRun)
		}, async.Restart(async.Every(time.Second), async.Attempts(2))).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Zero(t, v)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // what comes beside the last error is given
		v, err := async.Execute(ctx, func(context.Context) (int, error) { return 7, errRun },
			async.Restart(async.Every(time.Second), async.Attempts(2))).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Equal(t, 7, v)
	})
}

func TestAnExpiredAwaitEndsATask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		f, _ := failing(100, nil)
		w := async.Start(ctx, f, async.Restart(async.Every(time.Minute)))
		_, err := w.Await(ctx, 10*time.Second)
		tookAbout(t, 10*time.Second, begin)
		var limit *async.TimeoutError
		require.ErrorAs(t, err, &limit)
		_, err = w.Join(ctx)
		tookAbout(t, 10*time.Second, begin)
		require.ErrorIs(t, err, limit)
		require.ErrorIs(t, err, errRun)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, _ := failing(100, nil)
		_, err := async.Start(ctx, f, async.Restart(async.Every(time.Minute)), async.Grace(time.Second)).Await(ctx, 10*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errRun, "with a grace both are told")
	})
}

// TestADaemonIsStartedAgainUntilItIsDismissed: in a run or in the wait, that is no
// failure, whatever it returns then.
func TestADaemonIsStartedAgainUntilItIsDismissed(t *testing.T) {
	closed := errors.New("http: Server closed")
	for name, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
		for how, opts := range map[string][]async.ScopeOption{"plain": nil, "limit": {async.Limit(1)}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					runs := 0
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							if runs++; runs == 1 {
								return errRun
							}
							_ = async.Sleep(ctx, lasts)
							return closed
						}, async.Daemon(), everySecond)
						async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3500*time.Millisecond) })
						return nil
					}, opts...))
					tookAbout(t, 3500*time.Millisecond, begin)
				})
			})
		}
	}
	t.Run("what its tasks say counts", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted })
					<-ctx.Done()
					return closed
				}, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Second)
			})
			require.ErrorIs(t, err, errPlanted)
		})
	})
	t.Run("its own timeout is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return closed },
					async.Daemon(), everySecond, async.Timeout(time.Second))
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorIs(t, err, closed)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("given up it is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				f, _ := failing(100, nil)
				async.Go(ctx, f, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorAs(t, err, new(*async.RestartError))
		})
	})
}

func TestAScopeThatIsCancelledInTheWaitIsNotFailedByThat(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		err := async.Scope(own, func(ctx context.Context) error {
			f, _ := failing(100, nil)
			async.Go(ctx, f, async.Restart(async.Every(time.Hour)))
			synctest.Wait()
			cancel(errPlanted)
			return nil
		}, async.Name("s"))
		var e *async.ScopeError
		require.ErrorAs(t, err, &e)
		require.Equal(t, errPlanted, e.Cause)
		require.Empty(t, e.Errors)
	})
}

// TestUnderWithoutCancelATaskGoesOn until its work is done: the scope waits.
func TestUnderWithoutCancelATaskGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		f, runs := failing(3, nil)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(context.WithoutCancel(ctx), f, everySecond)
			return errPlanted
		})
		require.Equal(t, errPlanted, err)
		require.EqualValues(t, 4, runs.Load())
		tookAbout(t, 3*time.Second, begin)
	})
}

// TestInACancelledScopeTheHandlerIsCalledOnce: as that of any task, which may have a
// channel to close.
func TestInACancelledScopeTheHandlerIsCalledOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(100, nil)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errPlanted })
			<-ctx.Done()
			async.Go(ctx, f, everySecond)
			return nil
		})
		require.ErrorIs(t, err, errPlanted)
		require.ErrorIs(t, err, errRun)
		require.EqualValues(t, 1, runs.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // with a Limit it would have to queue, and is skipped
		f, runs := failing(100, nil)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return errPlanted })
			synctest.Wait()
			own, cancel := context.WithCancelCause(ctx)
			cancel(errRun)
			_, err := async.Start(own, f, everySecond).Join(ctx)
			require.ErrorIs(t, err, errRun)
			return errPlanted
		}, async.Limit(1))
		require.ErrorIs(t, err, errPlanted)
		require.Zero(t, runs.Load())
	})
}

func TestOnAnEndedScopeNothingIsStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var ended context.Context
		_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
		f, runs := failing(100, nil)
		_, err := async.Start(ended, f, everySecond).Join(ctx)
		require.ErrorIs(t, err, async.ErrScopeEnded)
		require.NotNil(t, panicFrom(func() { async.Go(ended, f, everySecond) }))
		require.Zero(t, runs.Load())
	})
}

func TestARunThatAwaitsItsOwnTaskIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var f, g *async.Future[struct{}]
		ready := make(chan struct{})
		f = async.Start(ctx, func(ctx context.Context) error {
			time.Sleep(time.Second)
			<-ready
			_, err := f.Await(ctx, 0)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			_, err = g.Await(ctx, 0)
			return err
		}, everySecond)
		g = async.Start(ctx, func(ctx context.Context) error {
			_, err := f.Wait(ctx)
			return err
		})
		close(ready)
		_, err := f.Join(ctx)
		require.ErrorIs(t, err, async.ErrAwaitCycle)
		_, _ = g.Join(ctx)
	})
}

func TestTheStateOfATaskThatIsStartedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, _ := failing(1, nil)
		w := async.Start(ctx, f, everySecond)
		synctest.Wait()
		require.Equal(t, async.Running, w.State(), "between runs, too")
		require.True(t, w.IsRunning())
		time.Sleep(2 * time.Second)
		require.Equal(t, async.Done, w.State())
		require.False(t, w.Cancel(nil))
	})
}
