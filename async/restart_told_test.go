package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
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
