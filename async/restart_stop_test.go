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
	"github.com/ambit-go/ambit/async/asynctest"
)

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
						}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}))
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
				}, async.Restart(async.RestartPolicy{Interval: async.Every(7 * time.Second)}), async.Timeout(10*time.Second), async.Name("w")).Join(ctx)
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
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(7 * time.Second)}), async.Timeout(10*time.Second)).Join(ctx)
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

func TestAnExpiredAwaitEndsATask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		f, _ := failing(100, nil)
		w := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}))
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
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}), async.Grace(time.Second)).Await(ctx, 10*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errRun, "with a grace both are told")
	})
}

func TestAScopeThatIsCancelledInTheWaitIsNotFailedByThat(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		err := async.Scope(own, func(ctx context.Context) error {
			f, _ := failing(100, nil)
			async.Go(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}))
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
			require.ErrorContains(t, err, ": f -> f", "a run is not told apart from its task")
			_, err = g.Await(ctx, 0)
			require.Regexp(t, `: f -> g -> f$`, err)
			return err
		}, everySecond, async.Name("f"))
		g = async.Start(ctx, func(ctx context.Context) error {
			_, err := f.Wait(ctx)
			return err
		}, async.Name("g"))
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
		require.Equal(t, async.StateRunning, w.State(), "between runs, too")
		require.True(t, w.IsRunning())
		time.Sleep(2 * time.Second)
		require.Equal(t, async.StateDone, w.State())
		require.False(t, w.Cancel(nil))
	})
}

// TestStoppingRacesWithTheNextRun: however close to the start of a run a task is
// told to stop, it has one outcome, no run starts after it, and none overlap. The
// race detector looks on.
func TestStoppingRacesWithTheNextRun(t *testing.T) {
	ctx := asynctest.Context(t)
	for i := range fewer(400, 100) {
		var busy, over atomic.Int32
		own, cancel := context.WithCancelCause(ctx)
		opts := []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(0), Within: -1})}
		switch i % 4 {
		case 1:
			opts = append(opts, async.On(executorFunc(func(task func()) error { go task(); return nil })))
		case 2:
			opts = append(opts, async.OnAbort(func(context.Context, error) error { return nil }))
		case 3:
			opts = append(opts, async.Timeout(time.Hour))
		}
		var scope []async.ScopeOption
		if i%8 >= 4 {
			scope = append(scope, async.Limit(1))
		}
		err := async.Scope(own, func(ctx context.Context) error {
			f := async.Start(ctx, func(ctx context.Context) error {
				if busy.Add(1) != 1 || over.Load() != 0 {
					t.Error("two runs at a time, or one after the end")
				}
				defer busy.Add(-1)
				if i%16 >= 8 {
					runtime.Goexit()
				}
				return errRun
			}, opts...)
			stopped := make(chan struct{})
			for range 3 {
				time.AfterFunc(time.Duration(i)*10*time.Microsecond, func() {
					f.Cancel(errPlanted)
					cancel(errPlanted)
					stopped <- struct{}{}
				})
			}
			for range 3 {
				<-stopped
			}
			_, err := f.Join(context.WithoutCancel(ctx))
			over.Store(1)
			if !errors.Is(err, errPlanted) {
				t.Errorf("outcome %v", err)
			}
			return nil
		}, scope...)
		if err != nil && !errors.Is(err, errPlanted) {
			t.Errorf("the scope says %v", err)
		}
		cancel(nil)
	}
}

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
			require.Equal(t, async.StateRunning, w.State())
			require.True(t, w.Cancel(errPlanted))
			begin := time.Now()
			_, err := w.Join(ctx)
			tookAbout(t, 0, begin)
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

// TestATaskThatAnExecutorHasDroppedIsCancelled: the first time and after a Goexit.
func TestATaskThatAnExecutorHasDroppedIsCancelled(t *testing.T) {
	for name, kept := range map[string]int32{"first": 0, "later": 2} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var n atomic.Int32
				f, runs := failing(100, runtime.Goexit)
				w := async.Start(ctx, f, everySecond, async.On(executorFunc(func(task func()) error {
					if n.Add(1) <= kept {
						go task()
					}
					return nil
				})))
				time.Sleep(time.Minute)
				w.Cancel(errPlanted)
				begin := time.Now()
				_, err := w.Join(ctx)
				tookAbout(t, 0, begin)
				require.ErrorIs(t, err, errPlanted)
				require.Equal(t, kept, runs.Load())
			})
		})
	}
}

func TestTheLimitOfFailuresEndsATaskWithTheLast(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				err := start(ctx, func(context.Context) error { runs++; return fmt.Errorf("%w: %d", errRun, runs) },
					async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}), async.Name("worker"))
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
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(14 * time.Second)})).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.EqualValues(t, 5, runs.Load())
		f, runs = failing(99, nil)
		_, err = async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(16 * time.Second)})).Join(ctx)
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
		_, err := async.Start(ctx, f, async.Name("w"), async.Restart(async.RestartPolicy{Interval: func(n int) time.Duration {
			asked = append(asked, n)
			return waits[n-1] * time.Second
		}, Attempts: 3, Within: 10 * time.Second})).Join(ctx)
		require.EqualValues(t, 7, runs.Load())
		require.Equal(t, []int{1, 2, 3, 4, 5, 6}, asked)
		require.EqualError(t, err, "async: w: given up after 7 failures, 3 of them within 10s; last failure: the run failed")
	})
}

func TestWithin0IsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(10_000, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(0), Within: -1})).Join(ctx)
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
				_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: in, Within: -1})).Join(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 101, runs.Load())
				require.Equal(t, 100*time.Millisecond, time.Since(begin))
			})
		})
	}
}
