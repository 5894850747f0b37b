package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestASiblingHearsNothingOfAFailureThatIsRetried(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					f, _ := failing(4, end)
					async.Go(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
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
			}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 4}), async.Name("w"))
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

// TestWhatGoesWrongInAnObserverOfARunIsTheScopes, as with any task.
func TestWhatGoesWrongInAnObserverOfARunIsTheScopes(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, nothing, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
			return nil
		}, async.Observe(async.ObserverFunc(func(async.Event) { panic(errPlanted) })))
		require.ErrorIs(t, err, errPlanted)
	})
}

func TestOnlyTheLastFailureReachesTheScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var told []error
		err := async.Scope(ctx, func(ctx context.Context) error {
			f, _ := failing(100, nil)
			async.Go(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}))
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
				}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3, Within: 24 * time.Hour}), async.Name("w"))
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
		require.Equal(t, 17*time.Second, stopped, "when its tasks have ended")
		var e *async.RestartError
		require.ErrorAs(t, everythingIn(p), &e)
		require.Equal(t, 3, e.Failures)
		require.Contains(t, p.Error(), "given up after 3 failures within 24h0m0s")
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // and so OnPanic is asked about it, with the count
		f, _ := failing(100, ends["panic"])
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}))
			return nil
		}, async.OnPanic(func(p *async.PanicError) error {
			var e *async.RestartError
			require.ErrorAs(t, everythingIn(p), &e)
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
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3})).Join(ctx)
		require.IsType(t, new(async.PanicError), err)
		require.ErrorIs(t, err, errRun)
	})
}

func TestTheLastGoexitIsToldWithACount(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				f, _ := failing(100, runtime.Goexit)
				err := start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2}))
				require.ErrorIs(t, err, async.ErrGoexit)
				var e *async.RestartError
				require.ErrorAs(t, err, &e)
				require.Equal(t, 2, e.Failures)
			})
		})
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
	inBubble(t, func(t *testing.T, ctx context.Context) { // once, though the task is stopped in the wait
		var discarded []int
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			async.Go(ctx, func(context.Context) error { return errRun })
			return 1, nil
		}, everySecond, async.OnDiscard(func(n int) { discarded = append(discarded, n) }))
		time.Sleep(time.Second / 2)
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
		}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2})).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Zero(t, v)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // what comes beside the last error is given
		v, err := async.Execute(ctx, func(context.Context) (int, error) { return 7, errRun },
			async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2})).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Equal(t, 7, v)
	})
}

// This file is about what is seen and kept of tasks with Restart: by OnStall,
// DetachAfter, Shutdown and groups, and by the memory.

// TestATaskThatWaitsToBeStartedAgainIsNamedOnce, with its stack; and so is one that
// runs.
func TestATaskThatWaitsToBeStartedAgainIsNamedOnce(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"in the wait": 0, "in a run": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var told []*async.StragglerError
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						time.Sleep(lasts)
						return errRun
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}), async.Name("w"), async.Timeout(time.Minute))
					return nil
				}, async.OnStall(time.Second, func(e *async.StragglerError) { told = append(told, e) }))
				require.NotEmpty(t, told)
				require.Len(t, told[0].Left, 1)
				w := told[0].Left[0]
				require.Equal(t, "w", w.Task)
				require.Equal(t, async.StateRunning, w.State)
				if lasts == 0 {
					require.Contains(t, w.Stack, "restarter")
				} else {
					require.Contains(t, w.Stack, "TestATaskThatWaitsToBeStartedAgainIsNamedOnce")
				}
			})
		})
	}
}

// TestAfterDetachAfterARunIsNotStartedAgain: the straggler comes home, fails, and
// that is all.
func TestAfterDetachAfterARunIsNotStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		var runs atomic.Int32
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				runs.Add(1)
				time.Sleep(time.Minute) // deaf
				return ctx.Err()
			}, everySecond, async.Name("deaf"))
			return errPlanted
		}, async.DetachAfter(time.Second))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "deaf", left.Left[0].Task)
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, runs.Load())
	})
}

// TestWithoutCancelATaskGoesOnAfterDetachAfter: nobody has told it to stop.
func TestWithoutCancelATaskGoesOnAfterDetachAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(4, nil)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(context.WithoutCancel(ctx), f, everySecond)
			return errPlanted
		}, async.DetachAfter(1500*time.Millisecond))
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.EqualValues(t, 2, runs.Load())
		time.Sleep(time.Minute)
		require.EqualValues(t, 5, runs.Load())
	})
}

func TestADetachedTaskIsStartedAgainUntilShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var runs atomic.Int32
		async.Detach(ctx, "worker", func(ctx context.Context) error {
			if runs.Add(1)%2 == 0 {
				panic("no end of the process: it is retried")
			}
			return errRun
		}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}))
		time.Sleep(150 * time.Second)
		require.EqualValues(t, 3, runs.Load())
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin := time.Now()
		err := async.Shutdown(short)
		tookAbout(t, time.Second, begin)
		require.ErrorIs(t, err, async.ErrShutdown, "what a detached task returns, and so that it was stopped")
		time.Sleep(time.Hour)
		require.EqualValues(t, 3, runs.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // given up
		f, _ := failing(100, nil)
		async.Detach(ctx, "worker", f, everySecond)
		time.Sleep(time.Minute)
		err := async.Shutdown(ctx)
		require.ErrorAs(t, err, new(*async.RestartError))
	})
}

func TestShutdownEndsARootTaskThatIsStartedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(100, nil)
		w := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}))
		synctest.Wait()
		done, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, async.Shutdown(done))
		_, err, ok := w.Result()
		require.True(t, ok)
		require.ErrorIs(t, err, async.ErrShutdown)
		require.ErrorIs(t, err, errRun)
		require.EqualValues(t, 1, runs.Load())
	})
}

func TestATaskOfAGroupIsStartedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		f, runs := failing(3, nil)
		require.NoError(t, g.Go(f, everySecond))
		require.NoError(t, g.Wait(ctx))
		require.EqualValues(t, 4, runs.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) { // stopped in the wait
		g := async.NewGroup(ctx)
		f, runs := failing(100, nil)
		require.NoError(t, g.Go(f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}), async.Daemon()))
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, g.Stop(ctx, errPlanted), "a daemon that was told to stop has lost nothing")
		tookAbout(t, 0, begin)
		require.EqualValues(t, 1, runs.Load())
	})
}

// TestATaskKeepsNothingOfRunsThatHaveEnded: neither what they have started nor
// their errors, however often it was started again.
func TestATaskKeepsNothingOfRunsThatHaveEnded(t *testing.T) {
	runs := fewer(20_000, 4000)
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		var early, late uint64
		n := 0
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := async.Start(own, func(ctx context.Context) error {
			big := make([]byte, 4<<10)
			async.OnExit(ctx, func(context.Context, error) error { _ = big; return nil })
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); _ = big; return nil })
			sub, stop := context.WithCancel(ctx)
			context.AfterFunc(sub, stop)
			switch n++; n {
			case runs / 2:
				early = heapInUse()
			case runs:
				late = heapInUse()
				return async.Final(errRun)
			}
			return &bigError{big}
		}, async.Restart(async.RestartPolicy{Interval: async.Every(0), Within: -1}), async.Timeout(24*time.Hour), async.Heartbeat(time.Hour)).Join(ctx)
		require.Equal(t, errRun, err)
		require.Less(t, int64(late)-int64(early), int64(2<<20))
	})
}

// TestATaskThatIsCancelledInTheWaitKeepsNothing: its timer would have kept it for
// hours.
func TestATaskThatIsCancelledInTheWaitKeepsNothing(t *testing.T) {
	ctx := asynctest.Context(t)
	before := heapInUse()
	for range 200 {
		big := make([]byte, 64<<10)
		w := async.Start(ctx, func(context.Context) error { return &bigError{big} }, async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}))
		for w.State() == async.StateQueued { // until it has failed, perhaps
			runtime.Gosched()
		}
		w.Cancel(nil)
		_, _ = w.Join(ctx)
	}
	require.Less(t, int64(heapInUse())-int64(before), int64(4<<20))
}

type bigError struct{ big []byte }

func (*bigError) Error() string { return "big" }

// TestOnPanicIsAskedAboutTheLastPanicOfATaskThatIsStartedAgain, when the last run has
// ended.
func TestOnPanicIsAskedAboutTheLastPanicOfATaskThatIsStartedAgain(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs, asked, joined, ends := 0, 0, 0, 0
				var last context.Context
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						runs, last = runs+1, ctx
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); joined++; return ctx.Err() }, async.Name("child"))
						time.Sleep(time.Second)
						panic(errPlanted)
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}), async.Name("again"))
					return nil
				}, async.OnPanic(func(*async.PanicError) error {
					asked++
					require.Error(t, last.Err())
					return answer
				}), async.Observe(async.ObserverFunc(func(e async.Event) {
					if e.Kind == async.EventEnd && e.Task == "again" && errors.Is(e.Err, errPlanted) {
						ends++
					}
				})))
				require.Equal(t, answer, err)
				require.Equal(t, []int{3, 1, 3, 3}, []int{runs, asked, joined, ends})
			})
		})
	}
}
