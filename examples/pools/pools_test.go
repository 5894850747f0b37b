package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// opened makes a pool for a test. It is closed at the end, or by the test: what
// that panics with is returned.
func opened(t *testing.T, p pool, size int) (ex scheduler.Executor, closed func() any) {
	t.Helper()
	ex, closePool, err := p.open(size)
	require.NoError(t, err)
	closed = sync.OnceValue(func() (raised any) {
		defer func() { raised = recover() }()
		closePool()
		return nil
	})
	t.Cleanup(func() { closed() })
	return ex, closed
}

func onEveryPool(t *testing.T, test func(t *testing.T, p pool, size int)) {
	for _, p := range allPools {
		for _, size := range []int{1, 2, 8} {
			t.Run(fmt.Sprint(p.name, "/", size), func(t *testing.T) { test(t, p, size) })
		}
	}
}

func TestPostDoesNotWaitForAFullPool(t *testing.T) {
	onEveryPool(t, func(t *testing.T, p pool, size int) {
		ex, _ := opened(t, p, size)
		busy := newBlocked()
		for range size {
			require.NoError(t, ex.Execute(busy.run))
		}
		busy.await(size)
		ran := 0
		s := scheduler.New(ex)
		w := s.NewWorker(t.Context())
		for range 100 {
			require.NoError(t, w.Post(func() { ran++ }))
		}
		require.Equal(t, 100, w.Len(), "nothing can have run")
		busy.release()
		require.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, 100, ran)
	})
}

// blocked are tasks that hold goroutines of a pool until they are released.
type blocked struct{ begun, open chan struct{} }

func newBlocked() blocked { return blocked{make(chan struct{}), make(chan struct{})} }

func (b blocked) run() { b.begun <- struct{}{}; <-b.open }

func (b blocked) release() { close(b.open) }

// await waits until n of them run.
func (b blocked) await(n int) {
	for range n {
		<-b.begun
	}
}

// recovering are the pools that outlive a panic of a task, and what their close
// panics with then.
var recovering = []struct {
	pool
	raises string
}{
	{pool{"ants", openQuietAnts}, ""},
	{pool{"pond", openPond}, ""},
	{pool{"conc", openConc}, "boom"},
}

// openQuietAnts is openAnts without a stack on stderr for each panic.
func openQuietAnts(size int) (scheduler.Executor, func(), error) {
	p, err := ants.NewPool(size, ants.WithPanicHandler(func(any) {}))
	if err != nil {
		return nil, nil, err
	}
	return onAnts(p), func() { _ = p.ReleaseContext(context.Background()) }, nil
}

func TestWorkersGoOnAfterAPanicThatThePoolRecovers(t *testing.T) {
	for _, p := range recovering {
		for _, size := range []int{1, 2, 8} {
			t.Run(fmt.Sprint(p.name, "/", size), func(t *testing.T) {
				ex, closed := opened(t, p.pool, size)
				s := scheduler.New(ex)
				w, other := s.NewWorker(t.Context()), s.NewWorker(t.Context())
				ran, others := 0, 0
				for i := range 30 {
					if i%10 == 3 {
						require.NoError(t, w.Post(func() { panic("boom") }))
					}
					require.NoError(t, w.Post(func() { ran++ }))
					require.NoError(t, other.Post(func() { others++ }))
				}
				require.NoError(t, w.Wait(t.Context()))
				require.NoError(t, w.Post(func() { panic("boom") }))
				require.NoError(t, w.Wait(t.Context()))
				require.NoError(t, w.Post(func() { ran++ }))
				require.NoError(t, s.Drain(t.Context()))

				assert.Equal(t, 31, ran)
				assert.Equal(t, 30, others)
				assert.EqualValues(t, 4, w.Stats().Panicked)
				if raised := closed(); p.raises == "" {
					assert.Nil(t, raised)
				} else {
					assert.Contains(t, fmt.Sprint(raised), p.raises)
				}
			})
		}
	}
}

func TestRecoverPanicsIsRightForEveryPool(t *testing.T) {
	onEveryPool(t, func(t *testing.T, p pool, size int) {
		ex, closed := opened(t, p, size)
		var told []any
		s := scheduler.New(ex, scheduler.RecoverPanics(func(p *async.PanicError) { told = append(told, p.Value) }))
		w := s.NewWorker(t.Context())
		ran := 0
		for i := range 10 {
			require.NoError(t, w.Post(func() { ran++ }))
			require.NoError(t, w.Post(func() { panic(i) }))
		}
		require.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, 10, ran)
		assert.Equal(t, []any{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, told)
		assert.Nil(t, closed(), "the pool saw no panic")
	})
}

// tryPools are executors with a try, of one goroutine and no queue.
var tryPools = []pool{
	{"pond", func(size int) (scheduler.Executor, func(), error) {
		p := pond.NewPool(size, pond.WithQueueSize(0))
		return onPond{p}, p.StopAndWait, nil
	}},
	{"errgroup", openErrgroup},
	{"semaphore", openSemaphore},
}

func TestTryExecuteDoesNotBlockAndWhatItRefusesNeverRuns(t *testing.T) {
	for _, p := range tryPools {
		t.Run(p.name, func(t *testing.T) {
			ex, closed := opened(t, p, 1)
			c, ex := newCounter(ex)
			try, ok := ex.(tryExecutor)
			require.True(t, ok)
			busy := newBlocked()
			require.True(t, try.TryExecute(busy.run))
			busy.await(1)
			var ran atomic.Bool
			assert.False(t, try.TryExecute(func() { ran.Store(true) }))
			busy.release()
			closed()
			assert.False(t, ran.Load())
			assert.EqualValues(t, 1, c.n.Load())
		})
	}
}

func TestOnlyPoolsThatCanTryHaveATry(t *testing.T) {
	tries := map[string]bool{"ants": false, "pond": true, "conc": false, "errgroup": true, "semaphore": true}
	for _, p := range allPools {
		ex, _ := opened(t, p, 1)
		_, ex = newCounter(ex)
		_, can := ex.(tryExecutor)
		assert.Equal(t, tries[p.name], can, p.name)
	}
	assert.Len(t, allPools, len(tries))
}

func TestStoppedPoolRejectsWhatIsQueued(t *testing.T) {
	for _, p := range []pool{{"ants", openAnts}, {"pond", openPond}} {
		t.Run(p.name, func(t *testing.T) {
			ex, closePool, err := p.open(2)
			require.NoError(t, err)
			closePool()
			c, ex := newCounter(ex)
			w := scheduler.New(ex).NewWorker(t.Context())
			task, err := w.Schedule(func(context.Context) { t.Error("ran") })
			require.NoError(t, err)
			require.NoError(t, w.Wait(t.Context()))
			assert.Equal(t, scheduler.Rejected, task.State())
			assert.Zero(t, c.n.Load(), "what it has refused does not count")
		})
	}
}

// conc and errgroup may be given nothing while they are waited for. A pool of
// one goroutine has the scheduler block in Execute when the work is done.
func TestPoolMayBeClosedWhenTheSchedulerIsDrained(t *testing.T) {
	for _, p := range allPools {
		t.Run(p.name, func(t *testing.T) {
			for range 200 {
				ex, closed := opened(t, p, 1)
				s := scheduler.New(ex)
				for range 4 {
					require.NoError(t, s.NewWorker(t.Context()).Post(func() {}))
				}
				require.NoError(t, s.Drain(t.Context()))
				require.Nil(t, closed())
			}
		})
	}
}
