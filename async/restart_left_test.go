package async_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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
