package scheduler_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// TestWhatIsPendingAtTheEndIsLeftUndone and the scope is told so, whether it is the end
// of the worker's ctx or of the pool's, whoever takes it out of the queue after that,
// and though the worker was not told of the end yet.
func TestWhatIsPendingAtTheEndIsLeftUndone(t *testing.T) {
	type setting struct {
		s       *scheduler.Scheduler
		w       *scheduler.ExecutorWorker
		task    scheduler.Task
		future  *async.Future[int]
		endPool func()
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
		"the pool's end":   func(x setting) { x.endPool(); synctest.Wait() },
		"nothing":          func(setting) {},
	} {
		for _, of := range []string{"ctx", "pool"} {
			t.Run(name+", after the end of the "+of, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					pool := newLateCtx(t.Context())
					ended, cancel := context.WithCancelCause(t.Context())
					cancel(errBoom)
					x := setting{
						s:       scheduler.New(scheduler.Goroutines(), scheduler.PoolContext(pool)),
						endPool: sync.OnceFunc(pool.end), ended: ended,
					}
					defer x.endPool()
					want := scheduler.Cancelled
					err := async.Scope(asynctest.Context(t), func(ctx context.Context) (err error) {
						own := newLateCtx(ctx)
						end := sync.OnceFunc(own.end)
						defer end()
						x.w = x.s.NewWorker(own)
						release := blocked(t, x.w)
						x.task, err = x.w.Schedule(nothing)
						require.NoError(t, err)
						x.future = scheduler.Submit(x.w, func(context.Context) (int, error) { return 0, nil })
						if of == "ctx" {
							own.over.Store(true)
						} else {
							pool.over.Store(true)
							want = scheduler.Rejected
						}
						takeOut(x)
						if of == "pool" {
							x.endPool()
							synctest.Wait()
						}
						end()
						_, err = x.future.Await(ctx, 0)
						require.Error(t, err)
						release()
						return nil
					})
					require.ErrorIs(t, err, context.Canceled)
					require.Equal(t, want, x.task.State())
					if of == "ctx" {
						require.ErrorContains(t, err, "2 tasks were left undone")
					} else {
						require.ErrorAs(t, err, new(*scheduler.RejectedError))
					}
				})
			})
		}
	}
}

// TestWhatThePoolRefusesAfterTheEndIsLeftUndone: it was not the refusal that kept it
// from being done.
func TestWhatThePoolRefusesAfterTheEndIsLeftUndone(t *testing.T) {
	for _, of := range []string{"ctx", "pool"} {
		t.Run(of, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				refuse, pool := make(chan struct{}), newLateCtx(t.Context())
				defer pool.end()
				s := scheduler.New(scheduler.ExecutorFunc(func(func()) error { <-refuse; return errPool }), scheduler.PoolContext(pool))
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					own := newLateCtx(ctx)
					defer own.end()
					w := s.NewWorker(own)
					task, err := w.Schedule(nothing)
					require.NoError(t, err)
					synctest.Wait()
					want := scheduler.Cancelled
					if of == "ctx" {
						own.over.Store(true)
					} else {
						pool.over.Store(true)
						want = scheduler.Rejected
					}
					close(refuse)
					synctest.Wait()
					require.Equal(t, want, task.State())
					return nil
				})
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, errPool)
			})
		})
	}
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

// The error of a scope names the worker, how many of its tasks were left undone, and why,
// also if that was the pool.
func TestTheTextOfAScopeNamesWhatAWorkerLeftUndone(t *testing.T) {
	refused := scheduler.ExecutorFunc(func(func()) error { time.Sleep(time.Second); return errPool })
	for want, test := range map[string]struct {
		pool scheduler.Executor
		end  func(w *scheduler.ExecutorWorker, own, pool context.CancelCauseFunc)
	}{
		"scheduler: deploy: 2 tasks were left undone: rejected by the pool: the pool is full": {pool: refused},
		"scheduler: deploy: 2 tasks were left undone: rejected by the pool: boom": {scheduler.Goroutines(),
			func(_ *scheduler.ExecutorWorker, _, pool context.CancelCauseFunc) { pool(errBoom) }},
		"scheduler: deploy: 2 tasks were left undone: boom": {scheduler.Goroutines(),
			func(_ *scheduler.ExecutorWorker, own, _ context.CancelCauseFunc) { own(errBoom) }},
	} {
		inBubble(t, func(t *testing.T) {
			ended, pool := context.WithCancelCause(t.Context())
			defer pool(nil)
			s := scheduler.New(test.pool, scheduler.PoolContext(ended))
			err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				short, own := context.WithCancelCause(ctx)
				context.AfterFunc(ctx, func() { own(nil) })
				w := s.NewWorker(short, scheduler.Name("deploy"))
				if test.end != nil {
					release := blocked(t, w)
					time.AfterFunc(time.Second, func() { test.end(w, own, pool); synctest.Wait(); release() })
				}
				require.NoError(t, w.Post(func() {}))
				require.NoError(t, w.Post(func() {}))
				return nil
			})
			require.ErrorContains(t, err, want)
		})
	}
}
