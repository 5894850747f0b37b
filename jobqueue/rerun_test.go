package jobqueue_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// pagesToRunAgain returns a queue of pages that may be added while they run.
func pagesToRunAgain(opts ...jobqueue.Option) *jobqueue.Queue[int, page] {
	return jobqueue.NewKeyed(func(p page) int { return p.id },
		append(opts, jobqueue.WhileRunning(jobqueue.RunAgain))...)
}

// The retry of a job that was added again while it ran takes the newest job and
// keeps the place, however the job comes to go back. There is no other run.
func TestARetryTakesTheNewestJobAndKeepsThePlace(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(ctx context.Context, q *jobqueue.Queue[int, page], cancel context.CancelFunc) error
	}{
		{"the scope fails", func(context.Context, *jobqueue.Queue[int, page], context.CancelFunc) error { return errBoom }},
		{"the scope is cancelled", func(_ context.Context, _ *jobqueue.Queue[int, page], cancel context.CancelFunc) error {
			cancel()
			return nil
		}},
		{"Nack with an error", func(ctx context.Context, q *jobqueue.Queue[int, page], _ context.CancelFunc) error {
			q.Nack(ctx, errBoom, page{id: 1})
			return nil
		}},
		{"Nack without one", func(ctx context.Context, q *jobqueue.Queue[int, page], _ context.CancelFunc) error {
			q.Nack(ctx, nil, page{id: 1})
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := pagesToRunAgain()
			q.AddAll(page{1, "a"}, page{2, "x"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_ = q.Do(ctx, 1, func(ctx context.Context, _ []page) error {
				assert.True(t, q.Add(page{1, "b"}))
				assert.True(t, q.AddAfter(time.Hour, page{1, "c"}))
				return c.run(ctx, q, cancel)
			})
			assert.Equal(t, []page{{1, "c"}, {2, "x"}}, q.Queued())
			assert.Equal(t, 1, q.Attempt(1), "it is a retry, not a new job")
			assert.False(t, q.Add(page{1, "d"}), "it is queued")
			require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, jobs []page) error {
				assert.Equal(t, []page{{1, "c"}}, jobs)
				assert.Equal(t, 2, q.Attempt(1))
				return nil
			}))
			assert.Equal(t, []page{{2, "x"}}, q.Queued(), "there is no third run")
			s := q.Stats()
			assert.Equal(t, [3]uint64{3, 1, 1}, [3]uint64{s.Added, s.Done, s.Replaced})
		})
	}
}

// The newest job is as urgent as it says, and waits for the retry like the old
// one; its failures go on counting.
func TestARetryOfTheNewestKeepsDelayAndAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead []page
		q := pagesToRunAgain(jobqueue.RetryDelay(async.Every(time.Minute)),
			jobqueue.MaxAttempts(2, func(p page, _ error) { dead = append(dead, p) }),
			jobqueue.Priority(func(p page) int { return map[string]int{"urgent": math.MaxInt, "idle": math.MinInt}[p.text] }))
		q.AddAll(page{1, "idle"}, page{2, "x"}, page{3, "x"})
		require.NoError(t, q.Do(t.Context(), 2, func(context.Context, []page) error { return nil }))
		began := time.Now()
		_ = q.Do(t.Context(), 1, func(context.Context, []page) error { q.Add(page{1, "urgent"}); q.Add(page{4, "x"}); return errBoom })
		synctest.Wait()
		assert.Equal(t, []page{{4, "x"}, {1, "urgent"}}, q.Queued(), "it waits")
		time.Sleep(time.Minute)
		assert.True(t, q.Add(page{5, "x"}))
		_ = q.Do(t.Context(), 1, func(_ context.Context, jobs []page) error {
			assert.Equal(t, []page{{1, "urgent"}}, jobs)
			assert.Equal(t, time.Minute, time.Since(began))
			return errBoom
		})
		assert.Equal(t, []page{{1, "urgent"}}, dead)
	})
}

// A job that was added while another of its key ran for the last time is a job of
// its own, with all its attempts.
func TestAJobAddedBesideOneThatDiesLives(t *testing.T) {
	var dead []page
	q := pagesToRunAgain(jobqueue.MaxAttempts(1, func(p page, _ error) { dead = append(dead, p) }))
	q.Add(page{1, "a"})
	_ = q.Do(t.Context(), 1, func(context.Context, []page) error {
		q.Add(page{1, "b"})
		return errBoom
	})
	assert.Equal(t, []page{{1, "a"}}, dead)
	assert.Equal(t, []page{{1, "b"}}, q.Queued())
	assert.Zero(t, q.Attempt(1))
}

// A second run that was accepted is queued although the queue was closed since,
// or is full.
func TestAnAcceptedSecondRunIsKept(t *testing.T) {
	q := pagesToRunAgain(jobqueue.Capacity(1))
	q.Add(page{1, "a"})
	require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []page) error {
		assert.True(t, q.Add(page{2, "b"}))
		assert.True(t, q.Add(page{1, "c"}), "it is not queued yet, so there is room")
		q.Close()
		return nil
	}))
	assert.Equal(t, []page{{2, "b"}, {1, "c"}}, q.Queued())
}

// Removing a job in progress removes the run that was asked for since, and the
// retry is the job's own again.
func TestRemoveTakesBackASecondRun(t *testing.T) {
	q := pagesToRunAgain()
	q.Add(page{1, "a"})
	_ = q.Do(t.Context(), 1, func(context.Context, []page) error {
		assert.True(t, q.Add(page{1, "b"}))
		assert.True(t, q.Remove(1))
		assert.False(t, q.Remove(1))
		return errBoom
	})
	assert.Equal(t, []page{{1, "a"}}, q.Queued())
	s := q.Stats()
	assert.Equal(t, [3]uint64{2, 1, 0}, [3]uint64{s.Added, s.Removed, s.Replaced})
}
