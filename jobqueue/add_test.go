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

func TestAddAllIsOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			waits := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 10) })
			synctest.Wait()
			assert.Equal(t, []int{2}, q.AddAll(1, 2, 3, 2))
			jobs, err := waits.Wait(ctx)
			assert.Equal(t, []int{1, 2, 3}, jobs, "nobody was served before all were there")
			return err
		}))
	})
}

// A job that cannot be found again is not accepted, and nothing is left locked.
func TestKeysThatCannotBeFoundAreRejected(t *testing.T) {
	t.Run("not equal to themselves", func(t *testing.T) {
		q := jobqueue.New[float64]()
		assert.False(t, q.Add(math.NaN()))
		assert.Len(t, q.AddAll(1, math.NaN(), 2), 1)
		assert.False(t, q.Remove(math.NaN()))
		assert.Zero(t, q.Attempt(math.NaN()))
		require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, jobs []float64) error {
			q.Ack(ctx, math.NaN())
			q.Nack(ctx, errBoom, math.NaN())
			assert.Equal(t, []float64{1, 2}, jobs)
			return nil
		}))
		assert.Equal(t, uint64(2), q.Stats().Refused)
	})
	t.Run("not comparable", func(t *testing.T) {
		type pair struct {
			a int
			b [1]any
		}
		q := jobqueue.New[pair]()
		assert.True(t, q.Add(pair{1, [1]any{"b"}}))
		assert.False(t, q.Add(pair{1, [1]any{[]int{1}}}))
		assert.False(t, q.Remove(pair{1, [1]any{[]int{1}}}))
		assert.Len(t, q.Queued(), 1)
	})
}

// A function of the user that panics takes the call with it and nothing else.
func TestAPanickingKeyOrPriorityChangesNothing(t *testing.T) {
	boom := false
	shaky := func(i int) int {
		if boom && i == 2 {
			panic(errBoom)
		}
		return i
	}
	for name, q := range map[string]*jobqueue.Queue[int, int]{
		"key":      jobqueue.NewKeyed(shaky),
		"priority": jobqueue.New[int](jobqueue.Priority(shaky)),
	} {
		t.Run(name, func(t *testing.T) {
			boom = false
			q.Add(7)
			boom = true
			assert.PanicsWithValue(t, errBoom, func() { q.Add(2) })
			assert.PanicsWithValue(t, errBoom, func() { q.AddAll(1, 2, 3) })
			assert.PanicsWithValue(t, errBoom, func() { q.AddAfter(1, 2) })
			assert.Equal(t, []int{7}, q.Queued())
			err := q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
				if name == "key" {
					assert.PanicsWithValue(t, errBoom, func() { q.Ack(ctx, 7, 2) })
					assert.PanicsWithValue(t, errBoom, func() { q.Nack(ctx, errBoom, 7, 2) })
				}
				assert.Equal(t, []int{7}, q.InProgress())
				return nil
			})
			assert.NoError(t, err)
		})
	}
}

func TestCapacityRefusesButWhatFailsGoesBack(t *testing.T) {
	q := jobqueue.New[int](jobqueue.Capacity(2))
	assert.Equal(t, []int{3}, q.AddAll(1, 2, 3))
	assert.False(t, q.AddAfter(time.Hour, 4))
	err := q.Do(t.Context(), 2, func(context.Context, []int) error {
		assert.True(t, q.AddAfter(time.Hour, 5), "those in progress do not count")
		assert.True(t, q.Add(6))
		assert.False(t, q.Add(7), "the delayed one does")
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{1, 2, 6, 5}, q.Queued())
	assert.Equal(t, uint64(3), q.Stats().Refused)
	q.Close()
}

func TestTheMoreUrgentIsTakenFirst(t *testing.T) {
	q := jobqueue.NewKeyed(func(p page) int { return p.id },
		jobqueue.Priority(func(p page) int { return map[string]int{"high": math.MaxInt, "low": math.MinInt}[p.text] }))
	q.AddAll(page{1, "low"}, page{2, ""}, page{3, "high"}, page{4, "high"}, page{5, ""}, page{6, "low"})
	want := []page{{3, "high"}, {4, "high"}, {2, ""}, {5, ""}, {1, "low"}, {6, "low"}}
	assert.Equal(t, want, q.Queued())
	err := q.Do(t.Context(), 3, func(_ context.Context, jobs []page) error {
		assert.Equal(t, want[:3], jobs)
		q.Add(page{7, "high"})
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []page{{3, "high"}, {4, "high"}, {7, "high"}, {2, ""}, {5, ""}, {1, "low"}, {6, "low"}}, q.Queued())
}

// The one of two jobs that has the greater number is taken first, at the ends of the
// range too.
func TestTheGreaterNumberIsTakenFirst(t *testing.T) {
	q := jobqueue.New[int](jobqueue.Priority(func(job int) int { return job }))
	q.AddAll(0, math.MinInt, math.MaxInt, math.MinInt+1, -1, math.MaxInt-1, 1)
	assert.Equal(t, []int{math.MaxInt, math.MaxInt - 1, 1, 0, -1, math.MinInt + 1, math.MinInt}, q.Queued())
}

func TestRemoveTakesOutWhatIsNotInProgress(t *testing.T) {
	q := jobqueue.New[int](jobqueue.WhileRunning(jobqueue.RunAgain))
	q.AddAll(1, 2, 3)
	q.AddAfter(time.Hour, 4)
	assert.True(t, q.Remove(2))
	assert.True(t, q.Remove(4))
	assert.False(t, q.Remove(4))
	require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []int) error {
		assert.False(t, q.Remove(1), "it is in progress")
		assert.True(t, q.Add(1))
		assert.True(t, q.Remove(1), "its second run is not")
		assert.False(t, q.Remove(1))
		return nil
	}))
	assert.Equal(t, []int{3}, q.Queued())
	assert.Equal(t, uint64(3), q.Stats().Removed)
}

// Delayed jobs come in the order of their times, at the end of the queue as it is
// then, and are known before.
func TestDelayedJobsComeAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[string]()
		q.AddAfter(2*time.Second, "c")
		q.AddAfter(time.Second, "b")
		q.AddAfter(2*time.Second, "d")
		q.AddAfter(-time.Second, "a")
		q.AddAfter(math.MaxInt64, "never")
		assert.False(t, q.Add("b"))
		assert.Equal(t, []string{"a", "b", "c", "d", "never"}, q.Queued())
		time.Sleep(2 * time.Second)
		q.Add("e") // at the same instant, but they were due before
		require.NoError(t, q.Do(t.Context(), 9, func(_ context.Context, jobs []string) error {
			assert.Equal(t, []string{"a", "b", "c", "d", "e"}, jobs)
			return nil
		}))
		q.Close()
	})
}

// A second run that was asked for twice comes at the earlier time, with the newer
// job, as a job of its own.
func TestASecondRunComesAtTheEarliestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pagesToRunAgain()
		q.Add(page{1, "a"})
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []page) error {
			assert.True(t, q.AddAfter(time.Minute, page{1, "b"}))
			assert.True(t, q.AddAfter(time.Hour, page{1, "c"}))
			return nil
		}))
		assert.Zero(t, q.Attempt(1), "it is a new job")
		began := time.Now()
		require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, jobs []page) error {
			assert.Equal(t, []page{{1, "c"}}, jobs)
			assert.Equal(t, time.Minute, time.Since(began))
			return nil
		}))
	})
}

func TestOptionsSayWhatIsWrongWithThem(t *testing.T) {
	for _, c := range []struct {
		want string
		make func()
	}{
		{"needs a func(int) int", func() { jobqueue.New[int](jobqueue.Priority(func(string) int { return 0 })) }},
		{"needs a func(int, error)", func() { jobqueue.New[int](jobqueue.MaxAttempts(1, func(string, error) {})) }},
		{"needs a func(jobqueue.Event[int])", func() { jobqueue.New[int](jobqueue.Observe(func(jobqueue.Event[string]) {})) }},
		{"at least 1", func() { jobqueue.MaxAttempts[int](0, nil) }},
		{"at least 1", func() { jobqueue.Capacity(0) }},
		{"RetryDelay(nil)", func() { jobqueue.RetryDelay(nil) }},
		{"Priority(nil)", func() { jobqueue.Priority[int](nil) }},
		{"Observe(nil)", func() { jobqueue.Observe[int](nil) }},
		{"Reject or RunAgain", func() { jobqueue.WhileRunning(7) }},
		{"nil key", func() { jobqueue.NewKeyed[int, int](nil) }},
		{"at least 1", func() { _, _ = jobqueue.New[int]().Take(t.Context(), 0) }},
		{"at least 1 worker", func() { _ = jobqueue.New[int]().Consume(t.Context(), 0, 1, nil) }},
		{"at least 1", func() { _ = jobqueue.New[int]().Consume(t.Context(), 1, 0, nil) }},
		{"nil function", func() { _ = jobqueue.New[int]().Consume(t.Context(), 1, 1, nil) }},
		{"nil function", func() { _ = jobqueue.New[int]().Do(t.Context(), 1, nil) }},
	} {
		func() {
			defer func() { assert.Contains(t, recover(), c.want) }()
			c.make()
		}()
	}
}
