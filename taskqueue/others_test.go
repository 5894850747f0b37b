package taskqueue_test

import (
	"context"
	"errors"
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

// Faults of other queues that a worker decides about here, in the time of the test. The
// same in real time on every store, and what a store decides, is in package
// taskqueuetest; asynq PR #926 is in stop_test.go, too; asynq 389 and rq 472 are in
// packages memstore and redisstore.

// noHints is a store that never says that something has become due.
type noHints struct{ taskqueue.Store }

func (noHints) Wait(ctx context.Context, _ string, _ uint64, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

func TestBullmq2466ADelayedTaskRunsThoughNothingElseHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := taskqueue.New(noHints{memstore.New()})
		require.NoError(t, err)
		begin := time.Now()
		add(t, q, taskqueue.Task{Type: "t", Delay: 12345 * time.Millisecond})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		var ran time.Duration
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			ran = time.Since(begin)
			stop()
			return nil
		}}))
		assert.InDelta(t, 12345, ran.Milliseconds(), 5)
	})
}

func TestAsynq532ACancelledRunIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t", Retention: time.Hour})
		time.AfterFunc(time.Second, func() { _, _ = q.Cancel(t.Context(), id) })
		runs := 0
		work, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			runs++
			<-ctx.Done()
			return taskqueue.RetryAfter(0, errors.New("it was stopped"))
		}}))
		assert.Equal(t, 1, runs)
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateCancelled, i.State)
	})
}

func TestAsynqAPlaceIsNotGivenBackWhileTheHandlerStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		for range 3 {
			add(t, q, taskqueue.Task{Type: "t", Timeout: time.Second, MaxFailures: 1})
		}
		var mu sync.Mutex
		running, most, runs := 0, 0, 0
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			note := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				running += n
				most = max(most, running)
			}
			note(1)
			defer note(-1)
			runs++
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("does not care"))
			time.Sleep(time.Minute) // nor does this
			return ctx.Err()
		}}, taskqueue.Concurrency(1), taskqueue.WorkUntilEmpty()))
		assert.Equal(t, 3, runs)
		assert.Equal(t, 1, most)
	})
}

func TestAsynq371EveryProcessHasThePeriodicJobAndOneRunsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var mu sync.Mutex
		runs := 0
		work, cancel := context.WithTimeout(t.Context(), 10*time.Minute+30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 5 {
			q, err := taskqueue.New(s)
			require.NoError(t, err)
			require.NoError(t, q.Every("report", "@every 60s", taskqueue.Task{Type: "t"}))
			all.Go(func() {
				assert.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
					mu.Lock()
					defer mu.Unlock()
					runs++
					return nil
				}}))
			})
		}
		all.Wait()
		assert.Equal(t, 10, runs)
	})
}
