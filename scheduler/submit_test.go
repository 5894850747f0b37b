package scheduler_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// calls are the two ways to get a result.
var calls = map[string]func(ctx context.Context, w *scheduler.ExecutorWorker, f func(context.Context) (int, error)) (int, error){
	"Call": scheduler.Call[int],
	"Submit": func(ctx context.Context, w *scheduler.ExecutorWorker, f func(context.Context) (int, error)) (int, error) {
		return scheduler.Submit(w, f).Await(ctx, 0)
	},
}

// TestTheResultOfATask is its value, its error, its panic, or Goexit. The
// handler of panics is not told.
func TestTheResultOfATask(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
				ctx := asynctest.Context(t)
				w := scheduler.New(pool, scheduler.RecoverPanics(func(e *async.PanicError) { t.Error(e) })).NewWorker(ctx)
				v, err := call(ctx, w, func(ctx context.Context) (int, error) { return 42, nil })
				require.NoError(t, err)
				require.Equal(t, 42, v)
				_, err = call(ctx, w, func(context.Context) (int, error) { return 0, errBoom })
				require.ErrorIs(t, err, errBoom)
				_, err = call(ctx, w, func(context.Context) (int, error) { plant(0); return 0, nil })
				var p *async.PanicError
				require.ErrorAs(t, err, &p)
				require.Equal(t, planted, p.Value)
				if pool != scheduler.Inline() { // there it ends the caller's goroutine
					_, err = call(ctx, w, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
					require.ErrorIs(t, err, async.ErrGoexit)
				}
				v, err = call(ctx, w, func(ctx context.Context) (int, error) { return 43, nil })
				require.NoError(t, err)
				require.Equal(t, 43, v)
				require.NoError(t, w.Close())
				_, err = call(ctx, w, func(ctx context.Context) (int, error) { return 44, nil })
				require.ErrorIs(t, err, scheduler.ErrClosed)
				require.NoError(t, w.Wait(ctx))
				addUp(t, w)
			})
		})
	}
}

// TestWhatATaskStartsEndsBeforeTheNextTask of the worker.
func TestWhatATaskStartsEndsBeforeTheNextTask(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
				ctx := asynctest.Context(t)
				w := scheduler.New(pool).NewWorker(ctx)
				joined := false
				_, err := call(ctx, w, func(ctx context.Context) (int, error) {
					_ = w.Post(func() { require.True(t, joined) })
					async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); joined = true; return nil })
					return 1, nil
				})
				require.NoError(t, err)
				require.True(t, joined)
				idle(t, w)
			})
		})
	}
}

// TestACancelledFutureLeavesTheQueue at once, and so does one whose owner's
// Await has expired, or whose caller is gone.
func TestACancelledFutureLeavesTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
		release := blocked(t, w)
		never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
		f := scheduler.Submit(w, never)
		g := scheduler.Submit(w, never)
		require.Equal(t, 2, w.Len())
		require.True(t, f.Cancel(errBoom))
		require.Equal(t, 1, w.Len())
		_, err := f.Await(ctx, 0)
		require.ErrorIs(t, err, errBoom)
		_, err = g.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, w.Len())
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = scheduler.Call(short, w, never)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Zero(t, w.Len())
		require.EqualValues(t, 3, addUp(t, w).Cancelled)
		release()
		idle(t, w)
	})
}

// TestACallThatIsGivenUpWhileItWaitsForRoom takes no place when there is one.
func TestACallThatIsGivenUpWhileItWaitsForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		w, tasks, release := full(t, 1, scheduler.Block)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := scheduler.Call(short, w, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tasks[0].Cancel()
		synctest.Wait()
		require.Zero(t, w.Len())
		addUp(t, w)
		release()
		idle(t, w)
	})
}

// TestFuturesSettleWithWhatBecameOfTheWorker.
func TestFuturesSettleWithWhatBecameOfTheWorker(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(w *scheduler.ExecutorWorker)
		want error
	}{
		"CancelPending": {func(w *scheduler.ExecutorWorker) { w.CancelPending() }, scheduler.ErrCancelled},
		"Close":         {func(w *scheduler.ExecutorWorker) { _ = w.Close() }, scheduler.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
				release := blocked(t, w)
				never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
				f := scheduler.Submit(w, never)
				told := make(chan error)
				go func() { _, err := scheduler.Call(ctx, w, never); told <- err }()
				synctest.Wait()
				test.do(w)
				_, err := f.Await(ctx, time.Second)
				require.ErrorIs(t, err, test.want)
				require.ErrorIs(t, <-told, test.want)
				release()
				idle(t, w)
			})
		})
	}
	inBubble(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		w := scheduler.New(refusing(1), scheduler.Name("job")).NewWorker(ctx)
		for _, call := range calls {
			_, err := call(ctx, w, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
			var rejected *scheduler.RejectedError
			require.ErrorAs(t, err, &rejected)
			require.Equal(t, "job", rejected.Worker)
			require.ErrorIs(t, err, errPool)
		}
		idle(t, w)
	})
}

// TestARejectedFutureThatNobodyAwaitsFailsItsScope, as it does on an executor
// that refuses: nothing that went wrong is lost.
func TestARejectedFutureThatNobodyAwaitsFailsItsScope(t *testing.T) {
	work := func(context.Context) (int, error) { return 1, nil }
	for name, submit := range map[string]func(t *testing.T, ctx context.Context) (want error){
		"the pool refuses": func(t *testing.T, ctx context.Context) error {
			w := scheduler.New(refusing(1)).NewWorker(ctx)
			scheduler.Submit(w, work)
			return errPool
		},
		"the pool ends": func(t *testing.T, ctx context.Context) error {
			pool, end := context.WithCancelCause(t.Context())
			w := scheduler.New(new(dropping), scheduler.PoolContext(pool)).NewWorker(ctx)
			scheduler.Submit(w, work)
			end(errBoom)
			return errBoom
		},
		"the oldest is dropped": func(t *testing.T, ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Capacity(1, scheduler.DropOldest))
			release := blocked(t, w)
			defer release()
			scheduler.Submit(w, work)
			require.NoError(t, w.Post(func() {}))
			return scheduler.ErrFull
		},
		"the newest is dropped": func(t *testing.T, ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Capacity(1, scheduler.DropNewest))
			release := blocked(t, w)
			defer release()
			require.NoError(t, w.Post(func() {}))
			scheduler.Submit(w, work)
			return scheduler.ErrFull
		},
		"there is no room": func(t *testing.T, ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Capacity(1, scheduler.Fail))
			release := blocked(t, w)
			defer release()
			require.NoError(t, w.Post(func() {}))
			scheduler.Submit(w, work)
			return scheduler.ErrFull
		},
		"the worker is closed": func(t *testing.T, ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
			require.NoError(t, w.Close())
			scheduler.Submit(w, work)
			return scheduler.ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var want error
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					want = submit(t, ctx)
					return nil
				})
				require.ErrorIs(t, err, want)
				if want != scheduler.ErrClosed {
					var rejected *scheduler.RejectedError
					require.ErrorAs(t, err, &rejected)
				}
			})
		})
	}
}
