package jobqueue_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A worker of Consume may use one scope for many batches. Nobody can tell: every
// batch is settled as if it had a scope of its own. In each case the function
// does nothing for job 1, what the case says for job 2, and nothing for job 3.
func TestEveryBatchIsSettledByItself(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	fails := func(context.Context) error { return errBoom }
	hook := func(err error) func(context.Context, error) error {
		return func(context.Context, error) error { return err }
	}
	done, failed := []int(nil), []int{2} // what goes back
	for _, c := range []struct {
		name string
		do   func(ctx context.Context) error
		back []int
	}{
		{"nothing", nothing, done},
		{"an error", fails, failed},
		{"a task", func(ctx context.Context) error { async.Go(ctx, nothing); return nil }, done},
		{"a task that fails", func(ctx context.Context) error { async.Go(ctx, fails); return nil }, failed},
		{"a task that panics and is caught", func(ctx context.Context) error {
			_, _ = async.Start(ctx, func(context.Context) error { panic("boom") }).Wait(ctx)
			return nil
		}, done},
		{"a failed future that is awaited", func(ctx context.Context) error {
			_, _ = async.Start(ctx, fails).Wait(ctx)
			return nil
		}, done},
		{"a failed future that is not awaited", func(ctx context.Context) error { async.Start(ctx, fails); return nil }, failed},
		{"a promise that is left", func(ctx context.Context) error { async.NewPromise[int](ctx); return nil }, done},
		{"a promise that is rejected", func(ctx context.Context) error {
			_, p := async.NewPromise[int](ctx)
			p.Reject(errBoom)
			return nil
		}, failed},
		{"an exit hook", func(ctx context.Context) error { async.OnExit(ctx, hook(nil)); return nil }, done},
		{"an exit hook that fails", func(ctx context.Context) error { async.OnExit(ctx, hook(errBoom)); return nil }, failed},
		{"a look at Done", func(ctx context.Context) error { ctx.Done(); return nil }, done},
		{"a look at Done and an error", func(ctx context.Context) error { ctx.Done(); return errBoom }, failed},
		{"a derived context", func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			<-ctx.Done()
			return nil
		}, done},
		{"a scope inside", func(ctx context.Context) error { _ = async.Scope(ctx, fails); return nil }, done},
		{"a daemon", func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, async.Daemon())
			return nil
		}, done},
		{"a wait", func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, done},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(1, 2, 3)
				tries := make(map[int]int)
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { return q.Drain(ctx) })
					return q.Consume(ctx, 1, 1, func(ctx context.Context, jobs []int) error {
						if tries[jobs[0]]++; jobs[0] == 2 && tries[2] == 1 {
							return c.do(ctx)
						}
						return nil
					})
				}))
				assert.Equal(t, map[int]int{1: 1, 2: 1 + len(c.back), 3: 1}, tries)
				s := q.Stats()
				assert.EqualValues(t, []int{3, len(c.back), 0}, []int{int(s.Done), int(s.Failed), int(s.Dead)})
			})
		})
	}
}

// Tasks that a batch has started have ended, and its hooks have run, before the worker
// takes the next one.
func TestABatchEndsBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1, 2, 3, 4)
		live, runs := 0, 0
		require.NoError(t, q.Consume(t.Context(), 1, 1, func(ctx context.Context, jobs []int) error {
			assert.Zero(t, live)
			assert.Equal(t, jobs, q.InProgress())
			if jobs[0]%2 == 0 {
				live += 2
				async.Go(ctx, func(ctx context.Context) error { _ = async.Sleep(ctx, time.Second); live--; return nil })
				async.OnExit(ctx, func(context.Context, error) error {
					assert.Equal(t, jobs, q.InProgress(), "the hook was registered after the job was taken")
					live--
					return nil
				})
			}
			if runs++; runs == 4 {
				q.Close()
			}
			return nil
		}))
		assert.Zero(t, live)
	})
}

// A job that f takes beside its batch is settled with it, from this queue or another.
func TestABatchSettlesWhatItHasTakenBeside(t *testing.T) {
	q, other := queueOf(1, 2, 3, 4), queueOf(5)
	require.NoError(t, q.Consume(t.Context(), 1, 1, func(ctx context.Context, jobs []int) error {
		switch jobs[0] {
		case 2:
			assert.Equal(t, []int{3}, take(t, ctx, q, 1))
		case 4:
			assert.Equal(t, []int{5}, take(t, ctx, other, 1))
			q.Ack(ctx, 4)
			q.Close()
		}
		return nil
	}))
	for _, q := range []*jobqueue.Queue[int, int]{q, other} {
		assert.Empty(t, q.Queued())
		assert.Empty(t, q.InProgress())
	}
}

// A batch that was told to stop goes back, whatever its function returns. The
// batches before it are done.
func TestACancelledBatchGoesBackAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(cancel context.CancelFunc)
		want any
	}{
		{"cancelled", func(cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"panic", func(context.CancelFunc) { panic(errBoom) }, errBoom},
		{"goexit", func(context.CancelFunc) { runtime.Goexit() }, async.ErrGoexit},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := queueOf(1, 2, 3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var err error
			func() {
				defer func() {
					if p, ok := recover().(error); ok {
						err = p
					}
				}()
				err = q.Consume(ctx, 1, 1, func(_ context.Context, jobs []int) error {
					if jobs[0] == 2 {
						c.end(cancel)
					}
					return nil
				})
			}()
			assert.ErrorIs(t, err, c.want.(error))
			assert.Equal(t, []int{2, 3}, q.Queued())
			assert.EqualValues(t, 1, q.Stats().Done)
		})
	}
}

// Inside a batch Drain would wait for itself, in every batch.
func TestDrainInABatchIsRefused(t *testing.T) {
	q := queueOf(1, 2)
	require.NoError(t, q.Consume(t.Context(), 1, 1, func(ctx context.Context, jobs []int) error {
		assert.ErrorIs(t, q.Drain(ctx), jobqueue.ErrSelfWait)
		if q.Ack(ctx, jobs...); jobs[0] == 2 {
			return q.Drain(ctx)
		}
		return nil
	}))
	assert.EqualValues(t, 2, q.Stats().Done)
}

// Observers of package async are told of every batch.
func TestObserversOfAsyncAreToldOfEveryBatch(t *testing.T) {
	q := queueOf(1, 2, 3)
	ends := new(endCounter)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		return q.Consume(ctx, 1, 1, func(_ context.Context, jobs []int) error {
			if jobs[0] == 3 {
				q.Close()
			}
			return nil
		})
	}, async.Observe(ends)))
	assert.GreaterOrEqual(t, ends.n.Load(), int32(3+2), "three batches, the worker, and Consume")
}

// An endCounter counts what has ended.
type endCounter struct{ n atomic.Int32 }

func (c *endCounter) Observe(e async.Event) {
	if e.Kind == async.EventEnd {
		c.n.Add(1)
	}
}
