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

var errBoom = errors.New("boom")

// TestAWorkerEndsWithItsScope: drained before Scope returns if that has ended
// well, closed and joined otherwise.
func TestAWorkerEndsWithItsScope(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		ctx := asynctest.Context(t)
		s := scheduler.New(pool)
		for _, fails := range []bool{false, true} {
			ran, joined := 0, false
			var w *scheduler.ExecutorWorker
			err := async.Scope(ctx, func(ctx context.Context) error {
				w = s.NewWorker(ctx)
				started := make(chan struct{})
				go func() {
					_ = w.Post(func() {
						_, _ = w.Schedule(func(ctx context.Context) {
							close(started)
							if fails {
								<-ctx.Done()
							}
							time.Sleep(time.Minute) // longer than a hook may take
							joined = true
						})
						for range 100 {
							_ = w.Post(func() { ran++ })
						}
						_, _ = w.ScheduleAfter(time.Hour, func(context.Context) { t.Error("it is not due") })
					})
				}()
				<-started
				if fails {
					return errBoom
				}
				return nil
			})
			require.True(t, joined)
			require.True(t, w.Closed())
			if fails {
				require.ErrorIs(t, err, errBoom)
				require.Zero(t, ran)
			} else {
				require.NoError(t, err)
				require.Equal(t, 100, ran)
			}
			addUp(t, w)
			require.Zero(t, s.Stats().Workers)
		}
	})
}

// TestAWorkerOfACancelledScope is closed at once, while the body goes on.
func TestAWorkerOfACancelledScope(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		_ = async.Scope(ctx, func(ctx context.Context) error {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
			task, err := w.ScheduleAfter(time.Hour, nothing)
			require.NoError(t, err)
			cancel(errBoom)
			synctest.Wait()
			require.Equal(t, scheduler.Cancelled, task.State())
			require.Equal(t, scheduler.ErrClosed, w.Post(func() {}))
			return nil
		})
	})
}

// TestAContextWithoutAScopeClosesTheWorker when it ends.
func TestAContextWithoutAScopeClosesTheWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := scheduler.New(scheduler.Goroutines())
		w := s.NewWorker(ctx)
		var seen error
		running, err := w.Schedule(func(ctx context.Context) { <-ctx.Done(); seen = context.Cause(ctx) })
		require.NoError(t, err)
		late, err := w.ScheduleAfter(time.Hour, nothing)
		require.NoError(t, err)
		synctest.Wait()
		cancel(errBoom)
		synctest.Wait()
		require.Equal(t, errBoom, seen)
		require.Equal(t, scheduler.Done, running.State())
		require.Equal(t, scheduler.Cancelled, late.State())
		require.True(t, w.Closed())
		require.Zero(t, s.Stats().Workers)
	})
}

// TestAnEndedScopeOrSchedulerMakesClosedWorkers.
func TestAnEndedScopeOrSchedulerMakesClosedWorkers(t *testing.T) {
	var kept context.Context
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { kept = ctx; return nil }))
	s := scheduler.New(scheduler.Goroutines())
	require.Equal(t, scheduler.ErrClosed, s.NewWorker(kept).Post(func() {}))
	var drained *scheduler.ExecutorWorker
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { drained = s.NewWorker(ctx); return nil }))
	_, err := scheduler.Call(t.Context(), drained, func(context.Context) (int, error) { return 1, nil })
	require.ErrorIs(t, err, scheduler.ErrClosed, "it was closed before the ctx of its scope was done")
	require.NoError(t, s.Close())
	w := s.NewWorker(t.Context())
	require.Equal(t, scheduler.ErrClosed, w.Post(func() {}))
	require.NoError(t, w.Close())
	require.NoError(t, w.Drain(t.Context()))
	require.Zero(t, s.Stats().Workers)
}

// TestWaitingForYourself returns ErrSelfWait, and nothing else happens.
func TestWaitingForYourself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Goroutines())
		w, other := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		calls := func(ctx context.Context) {
			require.True(t, scheduler.InWorker(ctx, w))
			require.False(t, scheduler.InWorker(ctx, other))
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			require.Equal(t, scheduler.ErrSelfWait, w.Wait(ctx))
			require.Equal(t, scheduler.ErrSelfWait, w.Drain(ctx))
			require.Equal(t, scheduler.ErrSelfWait, s.Drain(ctx))
			_, err := scheduler.Call(ctx, w, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
			require.Equal(t, scheduler.ErrSelfWait, err)
			require.False(t, w.Closed())
			v, err := scheduler.Call(ctx, other, func(ctx context.Context) (int, error) {
				_, err := scheduler.Call(ctx, w, func(context.Context) (int, error) { return 0, nil })
				require.Equal(t, scheduler.ErrSelfWait, err, "by way of another worker")
				return 1, nil
			})
			require.NoError(t, err)
			require.Equal(t, 1, v)
			require.NoError(t, other.Wait(ctx))
		}
		_, err := w.Schedule(calls)
		require.NoError(t, err)
		_, err = scheduler.Submit(w, func(ctx context.Context) (int, error) { calls(ctx); return 1, nil }).Await(t.Context(), 0)
		require.NoError(t, err)
		_, err = scheduler.Call(t.Context(), w, func(ctx context.Context) (int, error) { calls(ctx); return 1, nil })
		require.NoError(t, err)
		require.NoError(t, s.Drain(t.Context()))
	})
}

// TestDrainCancelsWhatIsPeriodic, however much of it is queued.
func TestDrainCancelsWhatIsPeriodic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		release := blocked(t, w)
		ran := 0
		for i := range 1000 {
			_, err := w.ScheduleEvery(0, time.Second, func(context.Context) { t.Error("it ran") })
			require.NoError(t, err)
			if i%100 == 0 {
				require.NoError(t, w.Post(func() { ran++ }))
			}
		}
		go func() { time.Sleep(time.Second); release() }()
		require.NoError(t, w.Drain(t.Context()))
		require.Equal(t, 10, ran)
		require.EqualValues(t, 1000, addUp(t, w).Cancelled)
	})
}

// TestDrainThatIsGivenUp closes the worker and does not wait for its task.
func TestDrainThatIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		release := blocked(t, w)
		task, err := w.Schedule(nothing)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBoom)
		defer cancel()
		require.Equal(t, errBoom, w.Drain(ctx))
		require.Equal(t, scheduler.Cancelled, task.State())
		release()
		idle(t, w)
	})
}

// TestCloseWhileTasksRun, from inside one too: every task has its outcome, and
// nobody is left behind.
func TestCloseWhileTasksRun(t *testing.T) {
	onEveryPool(t, func(t *testing.T, pool scheduler.Executor) {
		s := scheduler.New(pool)
		for i := range 100 {
			w := s.NewWorker(t.Context())
			go func() {
				for j := range 50 {
					_ = w.Post(func() {
						if i%2 == 0 && j == 20 {
							_ = w.Close()
						}
					})
				}
			}()
			if i%2 == 1 {
				_ = w.Close()
				require.NoError(t, w.Close())
			}
		}
		synctest.Wait()
		require.NoError(t, s.Drain(t.Context()))
		require.Zero(t, s.Stats().Workers)
	})
}

type lockCtx struct {
	context.Context
	s *scheduler.Scheduler
}

func (c lockCtx) Value(k any) any { c.s.Stats(); return c.Context.Value(k) }

// TestAContextOfOnesOwnIsAskedWithoutALock: it may ask the scheduler in turn.
func TestAContextOfOnesOwnIsAskedWithoutALock(t *testing.T) {
	s := scheduler.New(scheduler.Goroutines())
	require.NoError(t, s.NewWorker(t.Context()).Post(func() {}))
	require.NoError(t, s.Drain(lockCtx{t.Context(), s}))
}
