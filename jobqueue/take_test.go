package jobqueue_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

var errBoom = errors.New("boom")

// queueOf returns a queue that holds jobs.
func queueOf[T comparable](jobs ...T) *jobqueue.Queue[T, T] {
	q := jobqueue.New[T]()
	q.AddAll(jobs...)
	return q
}

func TestTakeNeedsAScope(t *testing.T) {
	q := queueOf(1)
	jobs, err := q.Take(t.Context(), 1)
	assert.ErrorIs(t, err, jobqueue.ErrNoScope)
	assert.Empty(t, jobs)
	assert.Equal(t, []int{1}, q.Queued())
}

func TestTakeTakesAtMostWhatItMayInOrder(t *testing.T) {
	q := queueOf(1, 2, 3, 4, 5)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		jobs, err := q.Take(ctx, 3)
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3}, jobs)
		assert.Equal(t, []int{1, 2, 3}, q.InProgress())
		jobs, err = q.Take(ctx, 3)
		require.NoError(t, err)
		assert.Equal(t, []int{4, 5}, jobs)
		return nil
	}))
	queued, inProgress := q.Len()
	assert.Zero(t, queued+inProgress)
}

// Whatever a scope does but end well, its jobs are back in their places when it
// is over.
func TestJobsGoBackToTheirPlaces(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"error": func(context.Context) error { return errBoom },
		"task fails": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errBoom })
			return nil
		},
		"panic":  func(context.Context) error { panic("boom") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
		"later exit hook fails": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return errBoom })
			return nil
		},
		"later exit hook panics": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { panic("boom") })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := queueOf(1, 2, 3, 4)
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = async.Scope(context.Background(), func(ctx context.Context) error {
					jobs, err := q.Take(ctx, 2)
					assert.NoError(t, err)
					assert.Equal(t, []int{1, 2}, jobs)
					q.Add(5)
					return body(ctx)
				})
			}()
			<-done
			assert.Equal(t, []int{1, 2, 3, 4, 5}, q.Queued())
			assert.Empty(t, q.InProgress())
		})
	}
}

// A scope that was told to stop has not ended well although its body says so.
func TestACancelledScopeGivesItsJobsBack(t *testing.T) {
	q := queueOf(1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	err := q.Do(ctx, 1, func(context.Context, []int) error { cancel(); return nil })
	assert.NoError(t, err, "nothing was skipped")
	assert.Equal(t, []int{1, 2}, q.Queued())
}

func TestTakeBlocksUntilThereIsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			first := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 2) })
			synctest.Wait()
			second := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 2) })
			synctest.Wait()
			assert.False(t, isDone(first) || isDone(second))

			q.AddAll(1, 2, 3)
			jobs, err := first.Await(ctx, 0)
			require.NoError(t, err)
			assert.Equal(t, []int{1, 2}, jobs, "who waited longest is served first")
			jobs, err = second.Await(ctx, 0)
			require.NoError(t, err)
			assert.Equal(t, []int{3}, jobs)
			return nil
		}))
	})
}

func isDone[T any](f *async.Future[T]) bool { return f.State() == async.Done }

// Time passes only for who waits.
func TestRetryDelayAndAddAfterKeepToTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[string](jobqueue.RetryDelay(async.Every(time.Second)))
		q.Add("a")
		q.AddAfter(3*time.Second, "b")
		began := time.Now()
		var at []time.Duration
		var got []string
		go func() { time.Sleep(10 * time.Second); q.Close() }()
		require.NoError(t, q.Consume(t.Context(), 1, 2, func(ctx context.Context, jobs []string) error {
			at, got = append(at, time.Since(began)), append(got, jobs...)
			if len(at) < 3 {
				return errBoom
			}
			return nil
		}))
		assert.Equal(t, []string{"a", "a", "a", "b"}, got)
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, at)
	})
}
