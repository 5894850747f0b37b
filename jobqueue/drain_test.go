package jobqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Close tells who waits, refuses who adds or takes, and lets what is in progress
// end as it will. Jobs that are queued can be seen.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour)))
		q.AddAll(1, 2)
		err := q.Do(t.Context(), 2, func(ctx context.Context, _ []int) error {
			waits := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 1) })
			synctest.Wait()
			q.AddAfter(time.Minute, 3)
			q.Close()
			q.Close()
			_, err := waits.Wait(ctx)
			assert.ErrorIs(t, err, jobqueue.ErrClosed)
			assert.False(t, q.Add(4))
			assert.Equal(t, []int{4, 5}, q.AddAll(4, 5))
			q.Ack(ctx, 1)
			return errBoom
		})
		assert.ErrorIs(t, err, errBoom)
		assert.Equal(t, []int{2, 3}, q.Queued())
		assert.ErrorIs(t, q.Do(t.Context(), 1, never), jobqueue.ErrClosed)
		assert.NoError(t, q.Consume(t.Context(), 1, 1, never))
		time.Sleep(2 * time.Hour)
		assert.Equal(t, []int{2, 3}, q.Queued(), "no timer runs any more")
		assert.True(t, q.Remove(3))
		assert.ErrorIs(t, q.Drain(t.Context()), jobqueue.ErrClosed, "there is a job that nobody can take")
	})
}

// Drain waits for what is queued and in progress, what fails meanwhile included,
// but not for the delayed.
func TestDrainWaitsForAllButTheDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1, 2)
		q.AddAfter(time.Hour, 3)
		q.AddAfter(time.Second, 4) // it will be due while others are in progress
		began := time.Now()
		failed := false
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			drained := async.Start(ctx, q.Drain)
			synctest.Wait()
			assert.False(t, isDone(drained))
			assert.False(t, q.Add(5))
			async.Go(ctx, func(ctx context.Context) error {
				return q.Consume(ctx, 1, 1, func(ctx context.Context, jobs []int) error {
					_ = async.Sleep(ctx, time.Minute)
					if jobs[0] == 2 && !failed {
						failed = true
						return errBoom
					}
					return nil
				})
			})
			_, err := drained.Wait(ctx)
			return err
		}))
		assert.Equal(t, 4*time.Minute, time.Since(began))
		assert.Equal(t, []int{3}, q.Queued())
		assert.Equal(t, uint64(3), q.Stats().Done)
		assert.NoError(t, q.Drain(t.Context()), "it is drained")
	})
}

// Drain waits for retries, not for AddAfter: a job that failed and waits for its
// RetryDelay is waited for until it is done, dead or removed.
func TestDrainWaitsForRetriesNotForAddAfter(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(q *jobqueue.Queue[int, int]) // ends the wait, a minute after the failure
	}{
		{"done", func(q *jobqueue.Queue[int, int]) {}},
		{"removed", func(q *jobqueue.Queue[int, int]) { q.Remove(1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour)))
				q.Add(1)
				q.AddAfter(24*time.Hour, 2)
				began := time.Now()
				time.AfterFunc(time.Minute, func() { c.end(q) })
				runs := 0
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						return q.Consume(ctx, 1, 1, func(context.Context, []int) error {
							if runs++; runs == 1 {
								return errBoom
							}
							return nil
						})
					})
					return q.Drain(ctx)
				}))
				assert.Equal(t, []int{2}, q.Queued())
				if c.name == "done" {
					assert.Equal(t, []any{2, time.Hour}, []any{runs, time.Since(began)})
				} else {
					assert.Equal(t, []any{1, time.Minute}, []any{runs, time.Since(began)})
				}
			})
		})
	}
}

// A queue that is closed while a retry is waited for is not drained: the job is
// still there, and Drain says so.
func TestCloseEndsTheWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour)))
		q.Add(1)
		_ = q.Do(t.Context(), 1, func(context.Context, []int) error { return errBoom })
		time.AfterFunc(time.Minute, q.Close)
		began := time.Now()
		assert.ErrorIs(t, q.Drain(t.Context()), jobqueue.ErrClosed)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.Equal(t, []int{1}, q.Queued())
	})
}

// A delayed job whose time comes after the queue was drained changes nothing.
func TestDrainedIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		q.AddAfter(time.Second, 1)
		require.NoError(t, q.Drain(t.Context()))
		time.Sleep(time.Minute)
		require.NoError(t, q.Drain(t.Context()))
		assert.Equal(t, []int{1}, q.Queued())
		assert.True(t, q.Remove(1))
	})
}

// A context of somebody else may do as it likes: no lock is held meanwhile.
func TestContextsOfUsersAreAskedWithoutTheLock(t *testing.T) {
	q := queueOf(1)
	ctx := nosy{t.Context(), func() { q.Len() }}
	require.NoError(t, q.Do(ctx, 1, func(context.Context, []int) error { return nil }))
	require.NoError(t, async.Scope(ctx, func(own context.Context) error {
		f := async.Execute(own, func(ctx context.Context) ([]int, error) { return q.Take(nosy{ctx, func() { q.Len() }}, 1) })
		q.Add(2)
		_, err := f.Wait(ctx)
		return err
	}))
	require.NoError(t, q.Drain(ctx))
}

// nosy is a context that looks at a queue whenever it is asked something.
type nosy struct {
	context.Context
	look func()
}

func (c nosy) Done() <-chan struct{} { c.look(); return c.Context.Done() }
func (c nosy) Err() error            { c.look(); return c.Context.Err() }
func (c nosy) Value(key any) any     { c.look(); return c.Context.Value(key) }

// Who waits when a queue is drained is told.
func TestDrainTellsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			waits := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 1) })
			synctest.Wait()
			require.NoError(t, q.Drain(ctx))
			_, err := waits.Await(ctx, time.Second)
			assert.ErrorIs(t, err, jobqueue.ErrClosed)
			return nil
		}))
	})
}

// When its ctx ends Drain stops waiting; the queue goes on draining.
func TestDrainStopsWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1)
		cause := errors.New("going home")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		err := q.Drain(ctx)
		assert.ErrorIs(t, err, cause)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.False(t, q.Add(2))
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []int) error { return nil }))
		assert.ErrorIs(t, q.Do(t.Context(), 1, never), jobqueue.ErrClosed, "that was the last one")
	})
}

// Many may drain at once, in progress jobs or not, and a Close ends their wait.
func TestDrainsAndCloseTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1, 2)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return q.Do(ctx, 1, func(ctx context.Context, _ []int) error { return async.Sleep(ctx, time.Minute) })
			})
			synctest.Wait()
			a, b := async.Start(ctx, q.Drain), async.Start(ctx, q.Drain)
			synctest.Wait()
			q.Close()
			synctest.Wait()
			assert.False(t, isDone(a) || isDone(b), "one is in progress")
			for _, f := range []*async.Future[struct{}]{a, b} {
				_, err := f.Wait(ctx)
				assert.ErrorIs(t, err, jobqueue.ErrClosed, "2 was never taken")
			}
			return nil
		}))
	})
}

// Who holds jobs would wait for himself.
func TestDrainByWhoHoldsJobsIsRefused(t *testing.T) {
	q := queueOf(1, 2)
	require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
		assert.ErrorIs(t, q.Drain(ctx), jobqueue.ErrSelfWait)
		return async.Scope(ctx, func(ctx context.Context) error {
			assert.ErrorIs(t, q.Drain(ctx), jobqueue.ErrSelfWait)
			assert.True(t, q.Add(3), "it has changed nothing")
			return nil
		})
	}))
	assert.Equal(t, []int{2, 3}, q.Queued())
}

// Looking at a queue never waits for who works with it, and is a copy.
func TestReadableWhileOthersWrite(t *testing.T) {
	q := jobqueue.New[int]()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		for w := range 2 {
			async.Go(ctx, func(context.Context) error {
				for i := range 1000 {
					q.Add(2*i + w)
				}
				return nil
			})
		}
		consumer := async.Start(ctx, func(ctx context.Context) error {
			return q.Consume(ctx, 2, 3, func(context.Context, []int) error { return nil })
		})
		for range 200 {
			jobs := q.Queued()
			for i := range jobs {
				jobs[i] = -1
			}
			assert.NotContains(t, append(q.InProgress(), q.Queued()...), -1)
			s := q.Stats()
			assert.GreaterOrEqual(t, s.Added, s.Taken)
			assert.GreaterOrEqual(t, s.Taken, s.Done)
		}
		return async.Scope(ctx, func(ctx context.Context) error {
			for n := 0; n < 2000; n = int(q.Stats().Done) {
				if err := async.Sleep(ctx, time.Millisecond); err != nil {
					return err
				}
			}
			q.Close()
			_, err := consumer.Wait(ctx)
			return err
		})
	}))
	assert.Equal(t, uint64(2000), q.Stats().Done)
}
