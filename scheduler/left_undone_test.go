package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// TestWhatIsPendingWhenCtxEndsIsLeftUndone and the scope is told so, whoever takes
// it out of the queue after that, and though the worker was not told of the end yet.
func TestWhatIsPendingWhenCtxEndsIsLeftUndone(t *testing.T) {
	type setting struct {
		s       *scheduler.Scheduler
		w       *scheduler.ExecutorWorker
		task    scheduler.Task
		future  *async.Future[int]
		endPool context.CancelCauseFunc
		ended   context.Context
	}
	for name, takeOut := range map[string]func(x setting){
		"Task.Cancel":      func(x setting) { x.task.Cancel() },
		"Future.Cancel":    func(x setting) { x.future.Cancel(errBoom) },
		"an expired Await": func(x setting) { _, _ = x.future.Await(context.Background(), -1) },
		"CancelPending":    func(x setting) { x.w.CancelPending() },
		"Close":            func(x setting) { _ = x.w.Close() },
		"Scheduler.Close":  func(x setting) { _ = x.s.Close() },
		"Drain":            func(x setting) { _ = x.w.Drain(x.ended) },
		"Scheduler.Drain":  func(x setting) { _ = x.s.Drain(x.ended) },
		"the pool's end":   func(x setting) { x.endPool(errPool); synctest.Wait() },
		"nothing":          func(setting) {},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pool, endPool := context.WithCancelCause(t.Context())
				ended, cancel := context.WithCancelCause(t.Context())
				cancel(errBoom)
				x := setting{
					s:       scheduler.New(scheduler.Goroutines(), scheduler.PoolContext(pool)),
					endPool: endPool, ended: ended,
				}
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) (err error) {
					late := newLateCtx(ctx)
					x.w = x.s.NewWorker(late)
					release := blocked(t, x.w)
					x.task, err = x.w.Schedule(nothing)
					require.NoError(t, err)
					x.future = scheduler.Submit(x.w, func(context.Context) (int, error) { return 0, nil })
					late.over.Store(true)
					takeOut(x)
					late.end()
					_, err = x.future.Await(ctx, 0)
					require.Error(t, err)
					release()
					return nil
				})
				endPool(nil)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorContains(t, err, "2 tasks were left undone")
				require.Equal(t, scheduler.Cancelled, x.task.State())
			})
		})
	}
}

// TestWhatThePoolRefusesWhenCtxHasEndedIsLeftUndone: it was not the pool that kept it
// from being done.
func TestWhatThePoolRefusesWhenCtxHasEndedIsLeftUndone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		refuse := make(chan struct{})
		s := scheduler.New(scheduler.ExecutorFunc(func(func()) error { <-refuse; return errPool }))
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			late := newLateCtx(ctx)
			w := s.NewWorker(late)
			task, err := w.Schedule(nothing)
			require.NoError(t, err)
			synctest.Wait()
			late.over.Store(true)
			close(refuse)
			synctest.Wait()
			require.Equal(t, scheduler.Cancelled, task.State())
			late.end()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "1 task was left undone")
	})
}

// TestADrainIsToldWhenFuturesWereLeftUndone, though these hear of the end of ctx
// themselves, and may be faster than the worker.
func TestADrainIsToldWhenFuturesWereLeftUndone(t *testing.T) {
	for range 200 / scheduler.RaceFactor {
		inBubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
			release := blocked(t, w)
			future := scheduler.Submit(w, func(context.Context) (int, error) { return 0, nil })
			drained := make(chan error, 1)
			go func() { drained <- w.Drain(context.Background()) }()
			time.Sleep(time.Second)
			cancel(errBoom)
			_, err := future.Wait(context.Background())
			require.ErrorIs(t, err, errBoom)
			release()
			require.ErrorIs(t, <-drained, errBoom)
		})
	}
}
