package taskqueuetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// One worker cannot extend, and its handler does not look at its context. Another one
// runs the task again. The return of the first one is told to nobody, and until then
// its place is taken.
func deafHandler(f *workFixture) {
	m := &mangled{Store: f.s, extends: true}
	f.add(taskqueue.Task{ID: "a"})
	all, stop := context.WithCancel(f.Context())
	defer stop()
	second, stopSecond := context.WithCancel(all)
	defer stopSecond()
	var workers sync.WaitGroup
	var lost int64
	var returned, other time.Time
	started, settled := make(chan struct{}), make(chan struct{})
	workers.Go(func() {
		f.work(all, m, func(ctx context.Context, c *taskqueue.Claim) error {
			if c.ID == "other" {
				other = time.Now()
				stop()
				return nil
			}
			lost = c.Token
			close(started)
			<-ctx.Done()
			assert.Equal(f, taskqueue.ErrLeaseLost, context.Cause(ctx))
			<-settled // its successor has ended
			f.add(taskqueue.Task{ID: "other"})
			time.Sleep(300 * time.Millisecond) // the worker could claim it now
			c.SetResult([]byte("of the lost run"))
			returned = time.Now()
			return errors.New("of the lost run")
		}, taskqueue.Concurrency(1), taskqueue.WorkerName("first"))
	})
	workers.Go(func() {
		<-started
		f.work(second, f.s, func(_ context.Context, c *taskqueue.Claim) error {
			assert.Greater(f, c.Token, lost)
			c.SetResult([]byte("of the successor"))
			stopSecond()
			return nil
		}, taskqueue.WorkerName("second"), taskqueue.Lease(patience))
		close(settled)
	})
	workers.Wait()
	i := f.get("a")
	assert.Equal(f, taskqueue.StateDone, i.State)
	assert.Equal(f, "of the successor", string(i.Result))
	assert.Zero(f, i.Failures)
	assert.NotContains(f, m.settled, store.Ref{ID: "a", Token: lost})
	assert.False(f, other.Before(returned), "the place of the lost run is free before it has returned")
}

func stopGivesBack(f *workFixture) {
	f.add(taskqueue.Task{ID: "a"}, taskqueue.Task{ID: "b"}, taskqueue.Task{ID: "waits"})
	work, stop := context.WithCancel(f.Context())
	defer stop()
	var mu sync.Mutex
	running, began := 0, 0
	var told time.Time
	f.work(work, f.s, func(ctx context.Context, c *taskqueue.Claim) error {
		mu.Lock()
		running++
		if began++; began == 2 {
			told = time.Now()
			stop()
		}
		mu.Unlock()
		<-ctx.Done()
		assert.Equal(f, taskqueue.ErrStopping, context.Cause(ctx))
		mu.Lock()
		defer mu.Unlock()
		assert.GreaterOrEqual(f, time.Since(told), 400*time.Millisecond, "the grace")
		running--
		return ctx.Err()
	}, taskqueue.Concurrency(2), taskqueue.ShutdownGrace(400*time.Millisecond), taskqueue.Lease(patience))
	assert.Zero(f, running, "nothing runs after Work has returned")
	assert.Equal(f, 2, began, "nothing is claimed when the worker stops")
	for _, id := range []string{"a", "b", "waits"} {
		i := f.get(id)
		assert.NotEqual(f, taskqueue.StateRunning, i.State, id)
		assert.False(f, i.State.Ended(), id)
		assert.Zero(f, i.Attempt, "%s: no attempt is spent", id)
		assert.Zero(f, i.Failures+i.Crashes, id)
	}
}

func stopLetsEnd(f *workFixture) {
	f.add(taskqueue.Task{ID: "a"})
	work, stop := context.WithCancel(f.Context())
	defer stop()
	f.work(work, f.s, func(ctx context.Context, c *taskqueue.Claim) error {
		stop()
		time.Sleep(6 * time.Second) // longer than a lease: it is extended in the grace
		assert.NoError(f, ctx.Err())
		return nil
	}, taskqueue.ShutdownGrace(patience), taskqueue.Lease(5*time.Second))
	assert.Equal(f, taskqueue.StateDone, f.get("a").State)
	assert.Zero(f, f.get("a").Crashes)
}
