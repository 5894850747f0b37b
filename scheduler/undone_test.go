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

// twenty posts tasks of a second each.
func twenty(t *testing.T, w *scheduler.ExecutorWorker) {
	t.Helper()
	for range 20 {
		require.NoError(t, w.Post(func() { time.Sleep(time.Second) }))
	}
}

// TestAScopeWhoseWorkerLeftTasksUndoneIsNotNil, whatever has stopped it and
// whenever, and its error tells why.
func TestAScopeWhoseWorkerLeftTasksUndoneIsNotNil(t *testing.T) {
	type setting struct {
		ctx    context.Context // around the scope
		cancel context.CancelCauseFunc
		pool   context.CancelCauseFunc
		s      *scheduler.Scheduler
	}
	var rejected *scheduler.RejectedError
	for name, test := range map[string]struct {
		pool scheduler.Executor // nil: Goroutines
		opts []async.ScopeOption
		body func(ctx context.Context, x setting) error
		as   any // the type of an error that is in it
		is   error
	}{
		"its parent is cancelled while it drains": {body: func(ctx context.Context, x setting) error {
			twenty(t, x.s.NewWorker(ctx))
			time.AfterFunc(3*time.Second, func() { x.cancel(errBoom) })
			return nil
		}, is: errBoom},
		"its own time is up while it drains": {body: func(ctx context.Context, x setting) error {
			twenty(t, x.s.NewWorker(ctx))
			return nil
		}, opts: []async.ScopeOption{async.Timeout(3 * time.Second)}, is: context.DeadlineExceeded},
		"its parent is cancelled before its body returns": {body: func(ctx context.Context, x setting) error {
			twenty(t, x.s.NewWorker(ctx))
			synctest.Wait()
			x.cancel(errBoom)
			return nil
		}, is: errBoom},
		"nothing has run": {body: func(ctx context.Context, x setting) error {
			w := x.s.NewWorker(ctx)
			_, _ = w.ScheduleAfter(0, nothing)
			x.cancel(errBoom)
			synctest.Wait()
			return nil
		}, is: errBoom, pool: scheduler.ExecutorFunc(func(func()) error { return nil })},
		"a worker's own ctx ends while it drains": {body: func(ctx context.Context, x setting) error {
			short, cancel := context.WithTimeoutCause(ctx, 3*time.Second, errBoom)
			context.AfterFunc(ctx, cancel)
			twenty(t, x.s.NewWorker(short))
			return nil
		}, is: errBoom},
		"a worker's own ctx ends before": {body: func(ctx context.Context, x setting) error {
			short, cancel := context.WithCancelCause(ctx)
			twenty(t, x.s.NewWorker(short))
			synctest.Wait()
			cancel(errBoom)
			time.Sleep(time.Minute)
			return nil
		}, is: errBoom},
		"somebody's drain is given up": {body: func(ctx context.Context, x setting) error {
			w := x.s.NewWorker(ctx)
			twenty(t, w)
			short, cancel := context.WithTimeoutCause(ctx, 3*time.Second, errBoom)
			defer cancel()
			_ = w.Drain(short)
			return nil
		}, is: errBoom},
		"the pool ends": {body: func(ctx context.Context, x setting) error {
			twenty(t, x.s.NewWorker(ctx))
			time.AfterFunc(3*time.Second, func() { x.pool(errBoom) })
			return nil
		}, is: errBoom, as: &rejected},
		"the pool refuses": {body: func(ctx context.Context, x setting) error {
			w := x.s.NewWorker(ctx)
			_, err := w.ScheduleAfter(time.Second, nothing)
			require.NoError(t, err)
			time.Sleep(time.Second)
			return nil
		}, is: errPool, as: &rejected, pool: scheduler.ExecutorFunc(func(func()) error { time.Sleep(time.Second); return errPool })},
		"a panic closes it": {body: func(ctx context.Context, x setting) error {
			w := x.s.NewWorker(ctx, scheduler.CloseOnPanic(), scheduler.RecoverPanics(func(*async.PanicError) {}))
			require.NoError(t, w.Post(func() { time.Sleep(time.Second); panic(1) }))
			twenty(t, w)
			return nil
		}, is: scheduler.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				if test.pool == nil {
					test.pool = scheduler.Goroutines()
				}
				var x setting
				x.ctx, x.cancel = context.WithCancelCause(asynctest.Context(t))
				pool, end := context.WithCancelCause(t.Context())
				x.pool, x.s = end, scheduler.New(test.pool, scheduler.PoolContext(pool), scheduler.Name("deploy"))
				err := async.Scope(x.ctx, func(ctx context.Context) error { return test.body(ctx, x) }, test.opts...)
				require.Error(t, err)
				require.ErrorIs(t, err, test.is)
				if test.as != nil {
					require.ErrorAs(t, err, test.as)
				}
				t.Log(err)
				x.cancel(nil)
				end(nil)
			})
		})
	}
}

// TestAScopeThatWasOnlyStoppedListsNoErrors of its workers, as with its tasks; what they
// left undone is said.
func TestAScopeThatWasOnlyStoppedListsNoErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		err := async.Scope(ctx, func(ctx context.Context) error {
			s := scheduler.New(scheduler.Goroutines())
			twenty(t, s.NewWorker(ctx))
			twenty(t, s.NewWorker(ctx))
			cancel(errBoom)
			return nil
		})
		require.ErrorIs(t, err, errBoom)
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Empty(t, list.Errors)
		require.Len(t, list.Stopped, 2)
		require.ErrorContains(t, err, "tasks were left undone")
	})
}

// TestWhatIsDroppedOnPurposeIsNoError of the scope, nor of a drain.
func TestWhatIsDroppedOnPurposeIsNoError(t *testing.T) {
	for name, drop := range map[string]func(w *scheduler.ExecutorWorker){
		"Close":         func(w *scheduler.ExecutorWorker) { _ = w.Close() },
		"CancelPending": func(w *scheduler.ExecutorWorker) { w.CancelPending() },
	} {
		for _, during := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					drained := make(chan error, 1)
					require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
						twenty(t, w)
						_, err := w.ScheduleEvery(0, time.Second, nothing)
						require.NoError(t, err)
						time.Sleep(1500 * time.Millisecond)
						if !during {
							drop(w)
							return nil
						}
						time.AfterFunc(time.Second, func() { drop(w) })
						go func() { drained <- w.Drain(context.Background()) }()
						return nil
					}))
					if during {
						require.NoError(t, <-drained)
					}
				})
			})
		}
	}
}

// TestWhatADrainWouldNotRunIsNotUndone: what is not due yet, or periodic.
func TestWhatADrainWouldNotRunIsNotUndone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			short, cancel := context.WithCancel(ctx)
			w := scheduler.New(scheduler.Goroutines()).NewWorker(short)
			release := blocked(t, w)
			_, _ = w.ScheduleAfter(time.Hour, nothing)
			_, _ = w.ScheduleEvery(0, time.Second, nothing)
			cancel()
			synctest.Wait()
			release()
			return nil
		}))
	})
}

// TestADrainThatIsCutShortIsAnErrorForAllWhoWait for it.
func TestADrainThatIsCutShortIsAnErrorForAllWhoWait(t *testing.T) {
	for name, cut := range map[string]func(w *scheduler.ExecutorWorker, end context.CancelCauseFunc){
		"by another drain": func(w *scheduler.ExecutorWorker, _ context.CancelCauseFunc) {
			short, cancel := context.WithCancelCause(context.Background())
			cancel(errBoom)
			_ = w.Drain(short)
		},
		"by the ctx of the worker": func(_ *scheduler.ExecutorWorker, end context.CancelCauseFunc) { end(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				s := scheduler.New(scheduler.Goroutines())
				w := s.NewWorker(ctx, scheduler.Name("deploy"))
				twenty(t, w)
				told := make(chan error, 3)
				go func() { told <- w.Drain(t.Context()) }()
				go func() { told <- w.Drain(t.Context()) }()
				go func() { told <- s.Drain(t.Context()) }()
				time.Sleep(1500 * time.Millisecond)
				cut(w, end)
				for range 3 {
					err := <-told
					require.ErrorIs(t, err, errBoom)
					require.Equal(t, "scheduler: deploy: 18 tasks were left undone: boom", err.Error())
				}
				require.NoError(t, w.Drain(t.Context()), "it has ended")
			})
		})
	}
}
