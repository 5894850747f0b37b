package taskqueue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// priorities runs tasks of three classes, all due, one at a time, and returns the
// classes in the order in which they ran.
func priorities(t *testing.T, opts ...taskqueue.WorkOption) (order []uint8) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		for range 300 {
			for _, p := range []uint8{0, 3, 7} {
				add(t, q, taskqueue.Task{Type: "t", Priority: p})
			}
		}
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			order = append(order, c.Priority)
			return nil
		}}, append(opts, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(1))...))
	})
	return order
}

func TestTheMoreUrgentComeFirst(t *testing.T) {
	order := priorities(t)
	require.Len(t, order, 900)
	for i, p := range order {
		assert.Equal(t, []uint8{7, 3, 0}[i/300], p, "place %d", i)
	}
}

// One of two classes that are four apart comes first in 16 of 17 cases.
func TestWeightedLetsTheLessUrgentRunNowAndThen(t *testing.T) {
	order := priorities(t, taskqueue.Weighted())
	require.Len(t, order, 900)
	urgent := 0
	for _, p := range order[:300] {
		if p == 7 {
			urgent++
		}
	}
	assert.Greater(t, urgent, 200, "the urgent are preferred")
	assert.Less(t, urgent, 300, "and do not come before all else")
}

// The limits of a queue hold for all workers together.
func TestLimitsOfAQueueHoldForAllWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		set   taskqueue.Settings
		check func(t *testing.T, most int, took time.Duration)
	}{
		"concurrency": {taskqueue.Settings{Concurrency: 3}, func(t *testing.T, most int, _ time.Duration) { assert.Equal(t, 3, most) }},
		"rate": {taskqueue.Settings{Rate: 10, Burst: 5}, func(t *testing.T, _ int, took time.Duration) {
			assert.InDelta(t, 2.5, took.Seconds(), 0.2, "5 at once, 25 at ten a second")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				var mu sync.Mutex
				running, most, ran := 0, 0, 0
				var last time.Time
				work, stop := context.WithCancel(t.Context())
				defer stop()
				h := taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
					mu.Lock()
					running++
					most, last = max(most, running), time.Now()
					mu.Unlock()
					err := async.Sleep(ctx, 10*time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					running--
					if ran++; ran == 30 {
						stop()
					}
					return err
				}}
				begin := time.Now()
				var all sync.WaitGroup
				for i := range 3 {
					q, err := taskqueue.New(s)
					require.NoError(t, err)
					if i == 0 {
						require.NoError(t, q.Configure(t.Context(), func(s *taskqueue.Settings) { *s = c.set }))
						for range 30 {
							add(t, q, taskqueue.Task{Type: "t"})
						}
					}
					all.Go(func() { assert.NoError(t, q.Work(work, h, taskqueue.Concurrency(4))) })
				}
				all.Wait()
				assert.Equal(t, 30, ran)
				c.check(t, most, last.Sub(begin))
			})
		})
	}
}

// Section 7: it counts leases, not handlers whose lease is lost.
func TestTheConcurrencyOfAQueueCountsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &cutOff{Store: memstore.New(), cut: true}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		require.NoError(t, q.Configure(t.Context(), func(s *taskqueue.Settings) { s.Concurrency = 1 }))
		add(t, q, taskqueue.Task{Type: "stray", MaxCrashes: 1})
		add(t, q, taskqueue.Task{Type: "next"})
		begin := time.Now()
		var next time.Duration
		work, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, q.Work(work, taskqueue.Handlers{
			"stray": func(context.Context, *taskqueue.Claim) error { time.Sleep(time.Hour); return nil },
			"next":  func(context.Context, *taskqueue.Claim) error { next = time.Since(begin); stop(); return nil },
		}, taskqueue.Concurrency(2)))
		assert.Positive(t, next)
		assert.Less(t, next, 3*time.Minute)
	})
}

func TestAPausedQueueIsNotClaimedFromAndWhatRunsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		first := add(t, q, taskqueue.Task{Type: "t", Retention: 24 * time.Hour})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		begin := time.Now()
		ran := map[string]time.Duration{}
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			ran[c.ID] = time.Since(begin)
			if c.ID != first {
				stop()
				return nil
			}
			assert.NoError(t, q.Pause(ctx))
			add(t, q, taskqueue.Task{ID: "second", Type: "t"})
			time.AfterFunc(time.Hour, func() { assert.NoError(t, q.Resume(context.Background())) })
			return async.Sleep(ctx, 10*time.Minute)
		}}))
		assert.Equal(t, time.Hour, ran["second"], "at once with Resume")
		i, err := q.Get(t.Context(), first)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State)
	})
}
