package jobqueue_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A long scope keeps nothing of queues and batches that have ended: each case
// uses a new queue in the scope, in one more way, and drops it.
func TestALongScopeKeepsNothingOfQueues(t *testing.T) {
	const n = 4000 / raceFactor
	type queue = *jobqueue.Queue[int, int]
	for _, c := range []struct {
		name string
		use  func(ctx context.Context, q queue)
	}{
		{"Ack", func(ctx context.Context, q queue) { take(t, ctx, q, 2); q.Ack(ctx, 1, 2) }},
		{"Ack one by one", func(ctx context.Context, q queue) { take(t, ctx, q, 2); q.Ack(ctx, 1); q.Ack(ctx, 2) }},
		{"Nack", func(ctx context.Context, q queue) { take(t, ctx, q, 2); q.Nack(ctx, errBoom, 1, 2) }},
		{"Nack without an error", func(ctx context.Context, q queue) { take(t, ctx, q, 2); q.Nack(ctx, nil, 1, 2) }},
		{"Ack again and again", func(ctx context.Context, q queue) {
			for range 3 {
				q.Ack(ctx, take(t, ctx, q, 1)...)
				q.Add(1)
			}
		}},
		{"Ack by a task", func(ctx context.Context, q queue) {
			jobs := take(t, ctx, q, 2)
			_, _ = async.Start(ctx, func(ctx context.Context) error { q.Ack(ctx, jobs...); return nil }).Wait(ctx)
		}},
		{"a cancelled Take", func(ctx context.Context, q queue) {
			q.Remove(1)
			q.Remove(2)
			short, cancel := context.WithTimeout(ctx, time.Microsecond)
			defer cancel()
			_, err := q.Take(short, 1)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}},
		{"a Take that Close ends", func(ctx context.Context, q queue) {
			q.Remove(1)
			q.Remove(2)
			taken := async.Start(ctx, func(context.Context) error { _, err := q.Take(ctx, 1); assert.Error(t, err); return nil })
			runtime.Gosched()
			q.Close()
			_, _ = taken.Wait(ctx)
		}},
		{"a Take of a closed queue", func(ctx context.Context, q queue) {
			q.Close()
			_, err := q.Take(ctx, 1)
			assert.ErrorIs(t, err, jobqueue.ErrClosed)
		}},
		{"a Take of a Drain", func(ctx context.Context, q queue) {
			take(t, ctx, q, 2)
			q.Ack(ctx, 1, 2)
			assert.NoError(t, q.Drain(ctx))
		}},
		{"Do", func(ctx context.Context, q queue) {
			assert.NoError(t, q.Do(ctx, 2, func(context.Context, []int) error { return nil }))
		}},
		{"Do that fails", func(ctx context.Context, q queue) {
			assert.Error(t, q.Do(ctx, 2, func(context.Context, []int) error { return errBoom }))
		}},
		{"Consume", func(ctx context.Context, q queue) {
			assert.NoError(t, q.Consume(ctx, 2, 1, func(context.Context, []int) error { q.Close(); return nil }))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				use := func() { c.use(ctx, queueOf(1, 2)) }
				for range 100 { // what is kept once is no leak
					use()
				}
				before := heapInUse()
				for range n {
					use()
				}
				assert.Less(t, heapInUse()-before, int64(16*n+32<<10), "a queue that is kept is more than 1 kB")
				return nil
			}))
		})
	}
}

// A queue that lives for long keeps nothing of scopes that have taken from it.
func TestALongQueueKeepsNothingOfScopes(t *testing.T) {
	const n = 4000 / raceFactor
	q := jobqueue.New[int]()
	round := func() {
		q.AddAll(1, 2)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			jobs := take(t, ctx, q, 2)
			q.Ack(ctx, jobs[0])
			return nil
		}))
	}
	for range 100 {
		round()
	}
	before := heapInUse()
	for range n {
		round()
	}
	assert.Less(t, heapInUse()-before, int64(16*n+32<<10))
	runtime.KeepAlive(q)
}

// The last scope that took is not kept either, whatever its context carries.
func TestTheLastScopeIsNotKept(t *testing.T) {
	q := queueOf(1, 2)
	freed := make(chan struct{})
	type key struct{}
	func() {
		carried := new([64]byte)
		runtime.AddCleanup(carried, func(int) { close(freed) }, 0)
		require.NoError(t, async.Scope(context.WithValue(context.Background(), key{}, carried), func(ctx context.Context) error {
			jobs := take(t, ctx, q, 1)
			q.Ack(ctx, jobs...)
			return nil
		}))
	}()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // it is freed on another goroutine
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(q)
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Error("the queue keeps the context of a scope that has ended")
}
