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

// However a scope ends but well, those jobs that are not yet settled go back to
// their place with one more attempt, before anything that was added later.
func TestUnsettledJobsGoBackWithOneMoreAttempt(t *testing.T) {
	type ending func(ctx context.Context, cancel context.CancelFunc) error
	for name, end := range map[string]ending{
		"error":   func(context.Context, context.CancelFunc) error { return errBoom },
		"panic":   func(context.Context, context.CancelFunc) error { panic(errBoom) },
		"goexit":  func(context.Context, context.CancelFunc) error { runtime.Goexit(); return nil },
		"cancel":  func(_ context.Context, cancel context.CancelFunc) error { cancel(); return nil },
		"timeout": func(ctx context.Context, _ context.CancelFunc) error { <-ctx.Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(1, 2, 3)
				for attempt := 1; attempt <= 3; attempt++ {
					ended := make(chan struct{})
					go func() { // for Goexit
						defer close(ended)
						defer func() { _ = recover() }()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						_ = async.Scope(ctx, func(ctx context.Context) error {
							assert.Equal(t, []int{1, 2}, take(t, ctx, q, 2))
							assert.Equal(t, []int{attempt, attempt}, []int{q.Attempt(1), q.Attempt(2)})
							q.Add(3 + attempt)
							return end(ctx, cancel)
						}, async.Timeout(time.Minute))
					}()
					<-ended
					assert.Equal(t, []int{1, 2, 3, 4, 5, 6}[:3+attempt], q.Queued())
				}
				assert.ErrorIs(t, q.Do(t.Context(), 2, func(ctx context.Context, _ []int) error {
					q.Ack(ctx, 1)
					return errBoom
				}), errBoom)
				assert.Equal(t, []int{2, 3, 4, 5, 6}, q.Queued(), "1 was settled before")
				assert.Equal(t, 4, q.Attempt(2))
			})
		})
	}
}

// A job is given up after so many failed runs, and dead is told why.
func TestMaxAttemptsBuries(t *testing.T) {
	var dead []error
	q := jobqueue.New[int](jobqueue.MaxAttempts(3, func(job int, err error) {
		assert.Equal(t, 1, job)
		dead = append(dead, err)
	}))
	q.Add(1)
	for i := range 3 {
		assert.Empty(t, dead)
		_ = q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
			assert.Equal(t, i+1, q.Attempt(1))
			if i == 1 {
				q.Nack(ctx, errors.New("nacked"), 1)
				return nil
			}
			return errBoom
		})
	}
	require.Len(t, dead, 1)
	assert.ErrorIs(t, dead[0], errBoom)
	assert.Empty(t, q.Queued())
	s := q.Stats()
	assert.Equal(t, [3]uint64{3, 2, 1}, [3]uint64{s.Failed, s.Returned, s.Dead})
	assert.True(t, q.Add(1), "it is forgotten")
}

// Every dead job is told of, although the function panics each time.
func TestEveryDeadJobIsTold(t *testing.T) {
	var told []int
	q := jobqueue.New[int](jobqueue.MaxAttempts(1, func(job int, _ error) { told = append(told, job); panic(errBoom) }))
	q.AddAll(1, 2, 3)
	err := q.Do(t.Context(), 3, func(context.Context, []int) error { return errors.New("failed") })
	assert.ErrorAs(t, err, new(*async.PanicError))
	assert.Equal(t, []int{1, 2, 3}, told)
}

// Going home buries nothing: neither are attempts used up nor is there a delay.
func TestShuttingDownBuriesNoJobs(t *testing.T) {
	q := jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour)),
		jobqueue.MaxAttempts(1, func(int, error) { t.Error("buried") }))
	q.AddAll(1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	err := q.Consume(ctx, 2, 1, func(ctx context.Context, _ []int) error { cancel(); <-ctx.Done(); return errBoom })
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, jobs []int) error {
		assert.Equal(t, []int{1, 2}, jobs)
		q.Nack(ctx, nil, jobs...)
		return nil
	}))
	assert.Equal(t, []int{1, 2}, q.Queued(), "with no error a Nack is no failure")
}

// The delay is asked for with the number of failed runs, and the job is in its
// old place after it.
func TestRetryDelayKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		q := jobqueue.New[int](jobqueue.RetryDelay(func(failed int) time.Duration {
			asked = append(asked, failed)
			return time.Duration(failed) * time.Second
		}))
		q.AddAll(1, 2)
		for i := range 2 {
			_ = q.Do(t.Context(), 1, func(context.Context, []int) error { return errBoom })
			assert.Equal(t, []int{2, 1}, q.Queued(), "the delayed ones are last")
			time.Sleep(time.Duration(i+1) * time.Second)
			synctest.Wait()
			assert.Equal(t, []int{1, 2}, q.Queued())
		}
		assert.Equal(t, []int{1, 2}, asked)
	})
}

// A dead job is not asked for how long it waits.
func TestRetryDelayIsNotAskedForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		q := jobqueue.New[int](jobqueue.MaxAttempts[int](2, nil),
			jobqueue.RetryDelay(func(int) time.Duration { asked++; return time.Second }))
		q.Add(1)
		for range 2 {
			_ = q.Do(t.Context(), 1, func(context.Context, []int) error { return errBoom })
		}
		assert.Equal(t, 1, asked)
		assert.Equal(t, uint64(1), q.Stats().Dead)
	})
}

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
