package jobqueue_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// heapInUse returns what is reachable.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Jobs that are gone leave nothing: neither in the map, the run and the heaps,
// nor in who held them, however they went.
func TestAMillionJobsLeaveNothing(t *testing.T) {
	const n = 1_000_000 / raceFactor
	ctx := context.Background()
	for name, rid := range map[string]func(q *jobqueue.Queue[int, int]){
		"given back and done": func(q *jobqueue.Queue[int, int]) {
			require.Error(t, q.Do(ctx, n, func(context.Context, []int) error { return errBoom }))
			require.NoError(t, q.Do(ctx, n, func(context.Context, []int) error { return nil }))
		},
		"removed": func(q *jobqueue.Queue[int, int]) {
			for i := range n {
				q.Remove((i + n/2) % n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := jobqueue.New[int]()
			before := heapInUse()
			for i := range n {
				if i%2 == 0 && name == "removed" {
					q.AddAfter(time.Hour, i)
				} else {
					q.Add(i)
				}
			}
			rid(q)
			queued, inProgress := q.Len()
			require.Zero(t, queued+inProgress)
			assert.Less(t, heapInUse()-before, int64(1<<20))
			runtime.KeepAlive(q)
			q.Close()
		})
	}
}

// A Take that was cancelled leaves neither a waiter nor anything in the scope
// that it waited in, which may live long.
func TestCancelledWaitersLeaveNothing(t *testing.T) {
	const n = 20_000 / raceFactor
	q := jobqueue.New[int]()
	require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
		wait := func() {
			ctx, cancel := context.WithCancel(scope)
			cancelled := make(chan struct{})
			go func() { defer close(cancelled); cancel() }()
			_, err := q.Take(ctx, 1)
			assert.ErrorIs(t, err, context.Canceled)
			<-cancelled
		}
		wait()
		before := heapInUse()
		for range n {
			wait()
		}
		assert.Less(t, heapInUse()-before, int64(256<<10))
		return nil
	}))
	q.Add(1)
	assert.Equal(t, []int{1}, q.Queued())
}

// Many waits at once, all cancelled by the end of their scope, leave nothing in
// the queue, which lives on. The first round is for what the runtime keeps of
// goroutines that have ended.
func TestWaitersOfACancelledScopeLeaveNothing(t *testing.T) {
	const n = 20_000 / raceFactor
	q := jobqueue.New[int]()
	round := func() {
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Add(n)
		go func() { waiting.Wait(); cancel() }()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for range n {
				async.Go(ctx, func(ctx context.Context) error { waiting.Done(); _, err := q.Take(ctx, 1); return err })
			}
			return nil
		})
	}
	round()
	before := heapInUse()
	round()
	assert.Less(t, heapInUse()-before, int64(1<<20))
	runtime.KeepAlive(q)
}

func TestAllocations(t *testing.T) {
	if raceFactor > 1 {
		return // the detector allocates, too
	}
	q := jobqueue.New[int]()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		assert.EqualValues(t, 1, testing.AllocsPerRun(1000, func() {
			q.Add(1)
			jobs, _ := q.Take(ctx, 1)
			q.Ack(ctx, jobs...)
		}), "the slice of jobs; all else is used again")
		return nil
	}))
	q.Add(1)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { q.Add(1) }), "a duplicate")

	consume := func(n int) float64 {
		return testing.AllocsPerRun(100, func() {
			q := jobqueue.New[int]()
			for i := range n {
				q.Add(i)
			}
			require.NoError(t, q.Consume(t.Context(), 1, 1, func(_ context.Context, jobs []int) error {
				if jobs[0] == n-1 {
					q.Close()
				}
				return nil
			}))
		})
	}
	assert.LessOrEqual(t, (consume(550)-consume(50))/500, 2.5, "a node, as none is there to be used again, the slice of jobs, and the map's growth")
}
