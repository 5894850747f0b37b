package jobqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Told to stop is not failed. A limit of its own is. The cases are how a scope
// or task that holds a job comes to its end.
func TestWhoWasToldToStopHasNotFailed(t *testing.T) {
	cause := errors.New("going home")
	take := func(ctx context.Context, q *jobqueue.Queue[int, int]) error {
		if _, err := q.Take(ctx, 1); err != nil {
			return err
		}
		<-ctx.Done()
		return errBoom // whatever it says after it was told to stop
	}
	body := func(q *jobqueue.Queue[int, int]) func(ctx context.Context) error {
		return func(ctx context.Context) error { return take(ctx, q) }
	}
	for name, c := range map[string]struct {
		run    func(ctx context.Context, q *jobqueue.Queue[int, int])
		failed bool
	}{
		"ctx is cancelled": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(1, func() { cancel(cause) })
			_ = async.Scope(ctx, body(q))
		}},
		"ctx has a deadline": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			ctx, cancel := context.WithTimeout(ctx, 1)
			defer cancel()
			_ = async.Scope(ctx, body(q))
		}},
		"ctx has a deadline that looks like ours": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			ctx, cancel := context.WithTimeoutCause(ctx, 1, &async.TimeoutError{})
			defer cancel()
			_ = async.Scope(ctx, body(q))
		}},
		"the scope around has a time limit": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error { return async.Scope(ctx, body(q)) }, async.Timeout(1))
		}},
		"a sibling fails": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, body(q))
				async.Go(ctx, func(ctx context.Context) error { _ = async.Sleep(ctx, time.Second); return cause })
				return nil
			})
		}},
		"its future is cancelled": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			f := async.Start(ctx, body(q))
			synctest.Wait()
			f.Cancel(cause)
			_, _ = f.Wait(ctx)
		}},
		"it lost a race": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			lose := func(ctx context.Context) (int, error) { return 0, take(ctx, q) }
			_, _ = async.Race(ctx, lose, func(ctx context.Context) (int, error) { return 1, async.Sleep(ctx, time.Second) }).Wait(ctx)
		}},
		"a daemon is dismissed": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { _ = take(ctx, q); return nil }, async.Daemon())
				return async.Sleep(ctx, time.Second)
			})
		}},
		"it has a time limit": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, body(q), async.Timeout(1))
		}},
		"its task has a time limit": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_, _ = async.Start(ctx, body(q), async.Timeout(1)).Wait(ctx)
		}},
		"its owner waits no longer": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_, _ = async.Start(ctx, body(q)).Await(ctx, 1)
		}},
		"its heart stops": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_, _ = async.Start(ctx, body(q), async.Heartbeat(1)).Wait(ctx)
		}},
		"a task of it fails": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return errBoom }) // when the job is taken
				return take(ctx, q)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kinds []jobqueue.EventKind
				q := jobqueue.New[int](jobqueue.Observe(func(e jobqueue.Event[int]) { kinds = append(kinds, e.Kind) }))
				q.Add(1)
				_ = async.Scope(t.Context(), func(ctx context.Context) error { c.run(ctx, q); return nil })
				assert.Equal(t, []int{1}, q.Queued())
				want := jobqueue.Stopped
				if c.failed {
					want = jobqueue.Failed
				}
				assert.Equal(t, []jobqueue.EventKind{jobqueue.Added, jobqueue.Taken, want}, kinds)
				assert.Equal(t, uint64(1), q.Stats().Returned)
			})
		})
	}
}
