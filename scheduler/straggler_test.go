package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// ignoresItsContext is here for its name, which is to be in a stack.
//
//go:noinline
func ignoresItsContext() { time.Sleep(time.Hour) }

// stragglersOf returns what err says that is left.
func stragglersOf(t *testing.T, err error) (left []async.Straggler) {
	t.Helper()
	var e *async.StragglerError
	require.ErrorAs(t, err, &e)
	return e.Left
}

// straggler returns the one of that name.
func straggler(t *testing.T, left []async.Straggler, name string) async.Straggler {
	t.Helper()
	for _, s := range left {
		if s.Task == name {
			return s
		}
	}
	require.Fail(t, "no straggler "+name, "%v", left)
	return async.Straggler{}
}

// TestDetachAfterFreesAScopeFromItsWorkers: it names all whose tasks run, with
// their stacks, and they stay on record until the tasks have returned.
func TestDetachAfterFreesAScopeFromItsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		begin := time.Now()
		var first, second *scheduler.ExecutorWorker
		err := async.Scope(ctx, func(ctx context.Context) error {
			s := scheduler.New(scheduler.Goroutines())
			first, second = s.NewWorker(ctx, scheduler.Name("first")), s.NewWorker(ctx, scheduler.Name("second"))
			for _, w := range []*scheduler.ExecutorWorker{first, second, s.NewWorker(ctx, scheduler.Name("quick"))} {
				require.NoError(t, w.Post(func() {
					if w == first || w == second {
						ignoresItsContext()
					}
				}))
				require.NoError(t, w.Post(func() {}))
			}
			synctest.Wait()
			return errBoom
		}, async.Name("build"), async.DetachAfter(time.Second), async.HookTimeout(time.Minute))
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, err, errBoom)
		left := stragglersOf(t, err)
		for _, name := range []string{"first", "second"} {
			s := straggler(t, left, name)
			require.Contains(t, s.Stack, "ignoresItsContext")
			require.NotEqual(t, async.StateDone, s.State)
		}
		require.NotContains(t, err.Error(), "quick")
		require.NotEmpty(t, asynctest.Live(ctx))

		stop, cancel := context.WithCancel(ctx)
		cancel()
		straggler(t, stragglersOf(t, async.Shutdown(stop)), "second")
		time.Sleep(2 * time.Hour)
		require.Empty(t, asynctest.Live(ctx))
		require.NoError(t, first.Wait(ctx))
		require.NoError(t, second.Wait(ctx))
	})
}

// TestOnStallNamesTheWorkerThatHoldsAScopeUp, drained or cancelled.
func TestOnStallNamesTheWorkerThatHoldsAScopeUp(t *testing.T) {
	for name, end := range map[string]error{"drained": nil, "cancelled": errBoom} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []async.Straggler
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Name("deploy"))
					require.NoError(t, w.Post(ignoresItsContext))
					synctest.Wait()
					return end
				}, async.OnStall(time.Minute, func(e *async.StragglerError) { told = e.Left }))
				if !errors.Is(err, end) {
					t.Error(err)
				}
				require.Contains(t, straggler(t, told, "deploy").Stack, "ignoresItsContext")
			})
		})
	}
}

// TestShutdownCancelsAWorkerWhateverItsCtx: one that its scope would have
// drained and did not wait for.
func TestShutdownCancelsAWorkerWhateverItsCtx(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, _ := asynctest.Root(t.Context())
		var w *scheduler.ExecutorWorker
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			w = scheduler.New(scheduler.Goroutines()).NewWorker(context.WithoutCancel(ctx))
			for range 100 {
				require.NoError(t, w.Post(func() { time.Sleep(time.Minute) }))
			}
			return errBoom
		}, async.DetachAfter(time.Second)), errBoom)
		time.Sleep(150 * time.Second)
		stop, cancel := context.WithCancel(ctx)
		cancel()
		_ = async.Shutdown(stop)
		require.NoError(t, w.Wait(ctx))
		st := addUp(t, w)
		require.EqualValues(t, 3, st.Done)
		require.EqualValues(t, 97, st.Cancelled)
		synctest.Wait()
		require.Empty(t, asynctest.Live(ctx))
	})
}
