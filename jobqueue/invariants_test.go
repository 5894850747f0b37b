package jobqueue_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// The invariants that every queue of distinct jobs has to keep, one test each.

// One job of a key is known at a time, wherever it stands.
func TestOneJobOfAKeyIsKnown(t *testing.T) {
	q := jobqueue.NewKeyed(func(p page) int { return p.id })
	assert.True(t, q.Add(page{1, "first"}))
	assert.False(t, q.Add(page{1, "queued"}))
	assert.True(t, q.AddAfter(1e18, page{2, "first"}))
	assert.False(t, q.Add(page{2, "delayed"}))
	assert.Equal(t, []page{{3, "again"}}, q.AddAll(page{3, "first"}, page{3, "again"}))
	require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, jobs []page) error {
		assert.Equal(t, []page{{1, "first"}}, jobs)
		assert.False(t, q.Add(page{1, "in progress"}))
		return nil
	}))
	assert.Equal(t, []page{{3, "first"}, {2, "first"}}, q.Queued())
	assert.True(t, q.Add(page{1, "second"}), "it was removed when it was done")
	q.Close()
}

// At most one scope holds a job. A job that one has taken nobody else
// is given, although there is nothing else.
func TestAJobIsInOneHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1)
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
			other := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 1) })
			synctest.Wait()
			assert.False(t, isDone(other))
			q.Close()
			_, err := other.Await(ctx, 0)
			assert.ErrorIs(t, err, jobqueue.ErrClosed)
			return nil
		}))
	})
}

// Where there are jobs and somebody waits, the jobs are on their way to
// them: however jobs come to be ready.
func TestWhoWaitsIsServed(t *testing.T) {
	for name, ready := range map[string]func(ctx context.Context, q *jobqueue.Queue[int, int]){
		"added":        func(_ context.Context, q *jobqueue.Queue[int, int]) { q.Add(2) },
		"many added":   func(_ context.Context, q *jobqueue.Queue[int, int]) { q.AddAll(2, 3) },
		"delayed":      func(_ context.Context, q *jobqueue.Queue[int, int]) { q.AddAfter(1, 2) },
		"given back":   func(ctx context.Context, q *jobqueue.Queue[int, int]) { q.Nack(ctx, nil, 1) },
		"failed":       func(ctx context.Context, q *jobqueue.Queue[int, int]) { q.Nack(ctx, errBoom, 1) },
		"to run again": func(ctx context.Context, q *jobqueue.Queue[int, int]) { q.Add(1); q.Ack(ctx, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := jobqueue.New[int](jobqueue.WhileRunning(jobqueue.RunAgain))
				q.Add(1)
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					_, err := q.Take(ctx, 1)
					require.NoError(t, err)
					waits := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 1) })
					synctest.Wait()
					ready(ctx, q)
					jobs, err := waits.Wait(ctx)
					assert.Len(t, jobs, 1)
					return err
				}))
			})
		})
	}
}

// Jobs are taken in their order, and what goes back precedes what was added
// after it.
func TestWhatGoesBackPrecedesWhatCameLater(t *testing.T) {
	q := queueOf(0, 1, 2, 3, 4, 5, 6, 7)
	next := 8
	for range 50 {
		before := q.Queued()
		most := 1 + rand.IntN(4)
		_ = q.Do(t.Context(), most, func(ctx context.Context, jobs []int) error {
			assert.Equal(t, before[:len(jobs)], jobs)
			q.Add(next)
			if rand.IntN(2) == 0 {
				q.Nack(ctx, errBoom, jobs[len(jobs)-1])
			}
			return errBoom
		})
		assert.Equal(t, append(before, next), q.Queued())
		next++
	}
}

// Adding what is known changes nothing: neither the job nor its place.
func TestADuplicateChangesNothing(t *testing.T) {
	q := jobqueue.NewKeyed(func(p page) int { return p.id })
	q.AddAll(page{1, "a"}, page{2, "b"})
	assert.False(t, q.Add(page{1, "changed"}))
	require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, _ []page) error {
		assert.False(t, q.Add(page{1, "changed"}))
		return nil
	}))
	assert.Equal(t, []page{{2, "b"}}, q.Queued())
	assert.Equal(t, uint64(2), q.Stats().Duplicates)
}

// With RunAgain one run follows, of the newest, however many were added; it
// is at the end of the queue.
func TestRunAgainRunsOnceMore(t *testing.T) {
	q := jobqueue.NewKeyed(func(p page) int { return p.id }, jobqueue.WhileRunning(jobqueue.RunAgain))
	q.Add(page{1, "a"})
	require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, _ []page) error {
		assert.True(t, q.Add(page{1, "b"}))
		assert.True(t, q.Add(page{1, "c"}))
		assert.True(t, q.Add(page{2, "d"}))
		assert.Equal(t, []page{{2, "d"}}, q.Queued())
		return nil
	}))
	assert.Equal(t, []page{{2, "d"}, {1, "c"}}, q.Queued())
	assert.False(t, q.Add(page{1, "e"}), "it is queued")
	assert.Equal(t, uint64(3), q.Stats().Added)
}

// An error, a panic, Goexit or a cancellation has given the jobs back by the
// time Do returns, or the panic goes on.
func TestJobsAreBackWhenDoReturns(t *testing.T) {
	var cancel context.CancelFunc
	for name, f := range map[string]func(ctx context.Context, jobs []int) error{
		"error":        func(context.Context, []int) error { return errBoom },
		"panic":        func(context.Context, []int) error { panic(errBoom) },
		"goexit":       func(context.Context, []int) error { runtime.Goexit(); return nil },
		"cancellation": func(ctx context.Context, _ []int) error { cancel(); <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			q := queueOf(1)
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() {
					p := recover()
					assert.Equal(t, name == "panic", p != nil, "the panic goes on")
					assert.Equal(t, []int{1}, q.Queued())
				}()
				err := q.Do(ctx, 1, f)
				assert.Error(t, err)
			}()
			<-done
		})
	}
}

// After Drain there is nothing left: no job, and (TestMain looks) no
// goroutine.
func TestAfterDrainNothingIsLeft(t *testing.T) {
	q := jobqueue.New[int]()
	for i := range 100 {
		q.Add(i)
	}
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			return q.Consume(ctx, 4, 3, func(_ context.Context, jobs []int) error {
				if rand.IntN(3) == 0 {
					return errBoom
				}
				return nil
			})
		})
		return q.Drain(ctx)
	}))
	queued, inProgress := q.Len()
	assert.Zero(t, queued+inProgress)
	assert.Equal(t, uint64(100), q.Stats().Done)
	assert.False(t, q.Add(1))
}
