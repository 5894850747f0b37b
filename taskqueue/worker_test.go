package taskqueue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// claims counts them.
type claims struct {
	taskqueue.Store
	n atomic.Int64
}

func (s *claims) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	s.n.Add(1)
	return s.Store.Claim(ctx, r)
}

func TestAWorkerWhoseContextIsDoneClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &claims{Store: memstore.New()}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		add(t, q, taskqueue.Task{Type: "t"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": nothing}))
		}
		assert.Zero(t, s.n.Load())
		assert.Error(t, q.Work(ctx, nil), "what is wrong is told all the same")
	})
}

// lateAfterFunc is a context whose functions of context.AfterFunc are called a second after its end: a goroutine may be
// held up for as long.
type lateAfterFunc struct{ context.Context }

func (lateAfterFunc) Value(any) any { return nil } // so package context sees no context of its own

func (c lateAfterFunc) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.Context, func() {
		time.Sleep(time.Second)
		f()
	})
}

// The handler that ends the context of the worker gives its place back before anybody else has heard of that end.
func TestTheHandlerThatStopsTheWorkerIsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		for range 3 {
			add(t, q, taskqueue.Task{Type: "t"})
		}
		work, stop := context.WithCancel(t.Context())
		runs := 0
		require.NoError(t, q.Work(lateAfterFunc{work}, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			runs++
			stop()
			return nil
		}}, taskqueue.Concurrency(1)))
		assert.Equal(t, 1, runs)
	})
}

func TestHandlersAreTheWorkersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		h := taskqueue.Handlers{}
		h["t"] = func(context.Context, *taskqueue.Claim) error {
			delete(h, "t2") // the caller uses its map again
			add(t, q, taskqueue.Task{Type: "t2", ID: "next"})
			return nil
		}
		h["t2"] = nothing
		require.NoError(t, q.Work(t.Context(), h, taskqueue.WorkUntilEmpty()))
		for _, id := range []string{id, "next"} {
			i, err := q.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, taskqueue.StateDone, i.State)
		}
	})
}

func TestSeveralWorkersOfOneQueueRunEachTaskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		require.NoError(t, q.Every("tick", "@every 1s", taskqueue.Task{Type: "t"}))
		for range 100 {
			add(t, q, taskqueue.Task{Type: "t"})
		}
		work, cancel := context.WithTimeout(t.Context(), 10*time.Second+500*time.Millisecond)
		defer cancel()
		var n atomic.Int64
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				assert.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					n.Add(1)
					return async.Sleep(ctx, 10*time.Millisecond)
				}}, taskqueue.Concurrency(2)))
			})
		}
		all.Wait()
		assert.EqualValues(t, 110, n.Load())
	})
}

// A scope that has one slot has one handler at a time in it; the leases of those that
// wait for the slot are extended, and what has ended is settled.
func TestAWorkerInAScopeWithALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		for range 10 {
			add(t, q, taskqueue.Task{Type: "t"})
		}
		ran := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return q.Work(ctx, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					ran++
					time.Sleep(time.Minute) // it does not lend its slot
					stats, err := q.Stats(ctx)
					assert.NoError(t, err)
					assert.EqualValues(t, ran-1, stats.Counts[taskqueue.CountDone])
					return nil
				}}, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(4))
			})
			return nil
		}, async.Limit(1))
		require.NoError(t, err)
		assert.Equal(t, 10, ran)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 10, stats.Counts[taskqueue.CountDone])
		assert.Zero(t, stats.Counts[taskqueue.CountCrashed])
	})
}

// A task that a handler has started belongs to it.
func TestATaskIsSettledWhenWhatItHasStartedHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		begin := time.Now()
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
			return nil
		}}, taskqueue.WorkUntilEmpty()))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State)
		assert.Equal(t, time.Minute, i.EndedAt.Sub(begin).Truncate(time.Second))
	})
}

// The hooks of what a handler has started are called with the cause.
func TestAbortHooksHearWhyARunIsStopped(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		stop  func(q *taskqueue.Queue, id string, s *cutOff, stop func())
	}{
		"lease lost": {taskqueue.ErrLeaseLost, func(_ *taskqueue.Queue, _ string, s *cutOff, _ func()) { s.off(true) }},
		"cancelled":  {taskqueue.ErrCancelled, func(q *taskqueue.Queue, id string, _ *cutOff, _ func()) { _, _ = q.Cancel(context.Background(), id) }},
		"stopping":   {taskqueue.ErrStopping, func(_ *taskqueue.Queue, _ string, _ *cutOff, stop func()) { stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &cutOff{Store: memstore.New()}
				q, err := taskqueue.New(s)
				require.NoError(t, err)
				id := add(t, q, taskqueue.Task{Type: "t"})
				work, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(time.Second, func() { c.stop(q, id, s, stop) })
				var heard error
				require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					defer stop()
					killed := make(chan struct{}) // something that only the hook can end
					f := async.Start(ctx, func(context.Context) error { <-killed; return nil }, async.OnAbort(func(_ context.Context, cause error) error {
						heard = cause
						close(killed)
						return nil
					}))
					_, err := f.Join(ctx)
					return err
				}}, taskqueue.ShutdownGrace(time.Second)))
				assert.ErrorIs(t, heard, c.cause)
			})
		})
	}
}

// The limit of a task and the end of its lease, in either order.
func TestATimeoutAndALostLease(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"the timeout first": time.Second, "the lease first": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &cutOff{Store: memstore.New(), cut: true}
				q, o := observed(t, s)
				id := add(t, q, taskqueue.Task{Type: "t", Timeout: timeout, MaxFailures: 1})
				work, stop := context.WithCancel(t.Context())
				defer stop()
				var cause error
				require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					defer stop()
					<-ctx.Done()
					cause = context.Cause(ctx)
					time.Sleep(2 * time.Minute) // both have passed
					return ctx.Err()
				}}, taskqueue.ShutdownGrace(0), taskqueue.Concurrency(1)))
				var limit *async.TimeoutError
				assert.Equal(t, timeout == time.Second, errors.As(cause, &limit))
				assert.Equal(t, timeout != time.Second, errors.Is(cause, taskqueue.ErrLeaseLost))
				assert.Equal(t, []taskqueue.EventKind{taskqueue.EventStarted, taskqueue.EventLost}, o.of(id), "it is settled by nobody")
				i, err := q.Get(t.Context(), id)
				require.NoError(t, err)
				assert.Zero(t, i.Failures)
			})
		})
	}
}

func TestAStoreThatIsClosedEndsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(t)
		begin := time.Now()
		time.AfterFunc(time.Minute, func() { assert.NoError(t, s.Close()) })
		assert.ErrorIs(t, q.Work(t.Context(), taskqueue.Handlers{"t": nothing}), taskqueue.ErrClosed)
		assert.Equal(t, time.Minute, time.Since(begin), "at once")
	})
}

func TestAStoreThatIsClosedUnderARunNamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		err := q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			assert.NoError(t, s.Close())
			return async.Sleep(ctx, time.Second)
		}})
		var unsettled *taskqueue.UnsettledError
		require.ErrorAs(t, err, &unsettled)
		assert.ErrorIs(t, err, taskqueue.ErrClosed)
		assert.Equal(t, []string{id}, unsettled.IDs)
	})
}
