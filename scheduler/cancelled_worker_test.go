package scheduler_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// TestNoTaskStartsInAScopeThatHasFailed, though the task that runs stops at once
// when it is told to.
func TestNoTaskStartsInAScopeThatHasFailed(t *testing.T) {
	s, ran := scheduler.New(scheduler.Goroutines()), 0
	for range 1000 / scheduler.RaceFactor {
		require.ErrorIs(t, async.Scope(t.Context(), func(ctx context.Context) error {
			w := s.NewWorker(ctx)
			_, err := w.Schedule(func(ctx context.Context) { <-ctx.Done() })
			require.NoError(t, err)
			for range 100 {
				require.NoError(t, w.Post(func() { ran++ }))
			}
			return errBoom
		}), errBoom)
	}
	require.Zero(t, ran)
}

// lateCtx is done at once, and closes its channel never: package context and
// the worker cannot hear of its end, only see it.
type lateCtx struct {
	context.Context
	done chan struct{}
	over atomic.Bool
}

func newLateCtx(ctx context.Context) *lateCtx {
	return &lateCtx{Context: ctx, done: make(chan struct{})}
}

func (c *lateCtx) Done() <-chan struct{} { return c.done }
func (c *lateCtx) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

// end lets the worker's look at ctx end, too.
func (c *lateCtx) end() { c.over.Store(true); close(c.done) }

// TestFromTheMomentCtxIsDoneNothingStartsAndNothingIsAccepted, before anybody
// was told of its end.
func TestFromTheMomentCtxIsDoneNothingStartsAndNothingIsAccepted(t *testing.T) {
	for name, schedule := range map[string]func(w *scheduler.ExecutorWorker) (scheduler.Task, error){
		"Post":     func(w *scheduler.ExecutorWorker) (scheduler.Task, error) { return scheduler.Task{}, w.Post(func() {}) },
		"Schedule": func(w *scheduler.ExecutorWorker) (scheduler.Task, error) { return w.Schedule(nothing) },
		"ScheduleAfter": func(w *scheduler.ExecutorWorker) (scheduler.Task, error) {
			return w.ScheduleAfter(time.Second, nothing)
		},
		"ScheduleAt": func(w *scheduler.ExecutorWorker) (scheduler.Task, error) {
			return w.ScheduleAt(time.Now().Add(time.Second), nothing)
		},
		"ScheduleEvery": func(w *scheduler.ExecutorWorker) (scheduler.Task, error) {
			return w.ScheduleEvery(0, time.Second, nothing)
		},
		"PostAll": func(w *scheduler.ExecutorWorker) (scheduler.Task, error) {
			_, err := w.PostAll(func(yield func(func()) bool) { yield(func() {}) })
			return scheduler.Task{}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx := newLateCtx(t.Context())
				defer ctx.end()
				w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
				release := blocked(t, w)
				task, err := schedule(w)
				require.NoError(t, err)
				ctx.over.Store(true)
				require.True(t, w.Closed())
				_, err = schedule(w)
				require.Equal(t, scheduler.ErrClosed, err)
				release()
				time.Sleep(time.Minute)
				require.NotEqual(t, scheduler.Running, task.State())
				st := addUp(t, w)
				require.EqualValues(t, 1, st.Done)
				require.EqualValues(t, 1, st.Cancelled)
				require.Zero(t, st.Pending)
			})
		})
	}
}

// TestFuturesOfACancelledWorkerHoldTheCause, those that are queued and those
// that come too late.
func TestFuturesOfACancelledWorkerHoldTheCause(t *testing.T) {
	for name, scoped := range map[string]bool{"in a scope": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				outer := t.Context()
				if scoped {
					g := async.NewGroup(asynctest.Context(t))
					defer func() {
						err := g.Wait(t.Context())
						require.ErrorIs(t, err, errBoom)
						require.ErrorContains(t, err, "2 tasks were left undone")
					}()
					outer = g.Context()
				}
				ctx, cancel := context.WithCancelCause(outer)
				w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
				release := blocked(t, w)
				never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
				queued := scheduler.Submit(w, never)
				called := make(chan error, 1)
				go func() { _, err := scheduler.Call(outer, w, never); called <- err }()
				synctest.Wait()
				cancel(errBoom)
				_, err := queued.Await(outer, 0)
				require.ErrorIs(t, err, errBoom)
				require.ErrorIs(t, <-called, errBoom)
				_, err = scheduler.Submit(w, never).Await(outer, 0)
				require.ErrorIs(t, err, errBoom)
				_, err = scheduler.Call(outer, w, never)
				require.ErrorIs(t, err, errBoom)
				release()
				require.NoError(t, w.Wait(outer))
				require.EqualValues(t, 2, addUp(t, w).Cancelled)
			})
		})
	}
}

// TestACallThatWaitsForRoomIsToldOfTheEndOfCtx and takes no place after it.
func TestACallThatWaitsForRoomIsToldOfTheEndOfCtx(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Capacity(1, scheduler.Block))
		release := blocked(t, w)
		require.NoError(t, w.Post(func() { t.Error("it ran") }))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := w.Post(func() { t.Error("it ran") }); err != scheduler.ErrClosed {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		release()
		require.NoError(t, w.Wait(t.Context()))
		require.EqualValues(t, 2, addUp(t, w).Scheduled)
	})
}

// TestNoPlaceIsTakenOnceCtxIsDone, though one is freed before anybody was told
// of its end.
func TestNoPlaceIsTakenOnceCtxIsDone(t *testing.T) {
	for name, free := range map[string]func(w *scheduler.ExecutorWorker, task scheduler.Task){
		"by Cancel":        func(_ *scheduler.ExecutorWorker, task scheduler.Task) { task.Cancel() },
		"by CancelPending": func(w *scheduler.ExecutorWorker, _ scheduler.Task) { w.CancelPending() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx := newLateCtx(t.Context())
				w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Capacity(1, scheduler.Block))
				release := blocked(t, w)
				task, err := w.Schedule(nothing)
				require.NoError(t, err)
				told := make(chan error, 1)
				go func() { told <- w.Post(func() { t.Error("it ran") }) }()
				synctest.Wait()
				ctx.over.Store(true)
				free(w, task)
				synctest.Wait()
				require.EqualValues(t, 2, addUp(t, w).Scheduled)
				ctx.end()
				require.Equal(t, scheduler.ErrClosed, <-told)
				release()
				idle(t, w)
			})
		})
	}
}

// TestAWorkerWithoutCancelIsDrainedByAScopeThatFails: what counts is its own
// ctx.
func TestAWorkerWithoutCancelIsDrainedByAScopeThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(context.WithoutCancel(ctx))
			for range 10 {
				require.NoError(t, w.Post(func() { time.Sleep(time.Second); ran++ }))
			}
			return errBoom
		}), errBoom)
		require.Equal(t, 10, ran)
	})
}

// TestAnExitHookThatFailsDoesNotStopADrain: the ctx of the worker is not done.
func TestAnExitHookThatFailsDoesNotStopADrain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ran := 0
		require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
			for range 10 {
				require.NoError(t, w.Post(func() { time.Sleep(time.Second); ran++ }))
			}
			async.OnExit(ctx, func(context.Context, error) error { return errBoom })
			return nil
		}), errBoom)
		require.Equal(t, 10, ran)
	})
}
