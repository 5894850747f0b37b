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
			expect(async.StateQueued, false, false)
			<-first.Done()
			expect(async.StateRunning, true, false)
			time.Sleep(1500 * time.Millisecond)
			expect(async.StateRunning, true, false) // handler has returned, what it started runs
			require.True(t, f.Cancel(nil))
			expect(async.StateAborting, true, false)
			require.False(t, f.Cancel(errors.New("again")))
			<-f.Done()
			expect(async.StateDone, false, true)
			require.False(t, f.Cancel(nil))
			return nil
		}, async.Limit(1)))
	})
	require.Equal(t, "queued running aborting done", fmt.Sprint(async.StateQueued, async.StateRunning, async.StateAborting, async.StateDone))
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
		require.Equal(t, async.StateDone, f.State())
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

func TestATaskThatEndsIsNotSaidToBeAborting(t *testing.T) {
	for range 2000 / raceFactor {
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			f := async.Execute(ctx, answer)
			for s := f.State(); s != async.StateDone; s = f.State() {
				require.NotEqual(t, async.StateAborting, s)
				runtime.Gosched()
			}
			return nil
		})
	}
	var f atomic.Pointer[async.Future[int]]
	ready := make(chan struct{})
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		f.Store(async.Execute(ctx, func(context.Context) (int, error) { <-ready; return 1, nil }))
		close(ready)
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if f := f.Load(); e.Kind == async.EventEnd && f != nil {
			require.NotEqual(t, async.StateAborting, f.State())
		}
	}))))
}
