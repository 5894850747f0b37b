package scheduler_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/scheduler"
)

// endedPool complains when it is used after its end.
type endedPool struct {
	scheduler.Executor
	t     *testing.T
	ended atomic.Bool
}

func (p *endedPool) Execute(task func()) error {
	defer p.check()
	return p.Executor.Execute(task)
}

func (p *endedPool) check() {
	if p.ended.Load() {
		p.t.Error("the pool was used after Drain had returned")
	}
}

// TestAfterDrainThePoolIsUsedNoMore, so that it may be waited for: what no worker
// needs any more is not submitted late.
func TestAfterDrainThePoolIsUsedNoMore(t *testing.T) {
	for range 2000 {
		var g errgroup.Group
		g.SetLimit(1)
		p := &endedPool{Executor: scheduler.Errgroup(&g), t: t}
		s := scheduler.New(p)
		for range 4 {
			require.NoError(t, s.NewWorker(t.Context()).Post(func() {}))
		}
		require.NoError(t, s.Drain(t.Context()))
		p.ended.Store(true)
		require.NoError(t, g.Wait())
	}
}

// countingAfterEnd counts how often it is used after its end. It can be tried.
type countingAfterEnd struct {
	late  atomic.Int32
	ended atomic.Bool
}

func (p *countingAfterEnd) Execute(task func()) error { p.TryExecute(task); return nil }
func (p *countingAfterEnd) TryExecute(task func()) bool {
	if p.ended.Load() {
		p.late.Add(1)
	}
	go task()
	return true
}

// TestNothingIsOfferedAfterDrain by goroutines whose workers were closed in the
// middle of their turn.
func TestNothingIsOfferedAfterDrain(t *testing.T) {
	for range 20_000 / scheduler.RaceFactor {
		p := &countingAfterEnd{}
		s := scheduler.New(p, scheduler.Batch(1))
		var workers []*scheduler.ExecutorWorker
		for range 4 {
			w := s.NewWorker(t.Context())
			workers = append(workers, w)
			for range 3 {
				require.NoError(t, w.Post(func() {}))
			}
		}
		for _, w := range workers {
			require.NoError(t, w.Close())
		}
		require.NoError(t, s.Drain(t.Context()))
		p.ended.Store(true)
		runtime.Gosched()
		require.Zero(t, p.late.Load())
	}
}

// TestNothingIsSubmittedAfterDrain by a Post whose task was cancelled before it
// came to that.
func TestNothingIsSubmittedAfterDrain(t *testing.T) {
	for range 20_000 / scheduler.RaceFactor {
		p := &countingAfterEnd{}
		s := scheduler.New(p)
		w := s.NewWorker(t.Context())
		var post sync.WaitGroup
		post.Go(func() { _ = w.Post(func() {}) })
		for w.Stats().Scheduled == 0 {
			runtime.Gosched()
		}
		require.NoError(t, w.Close())
		require.NoError(t, s.Drain(t.Context()))
		p.ended.Store(true)
		post.Wait()
		require.Zero(t, p.late.Load())
	}
}
