package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

func TestTasksRunInOrder(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	x := 0 // no lock
	for i := range 1000 {
		require.NoError(t, w.Post(func() {
			if x != i {
				t.Errorf("%d ran after %d others", i, x)
			}
			x++
		}))
	}
	v, err := scheduler.Call(t.Context(), w, func(context.Context) (int, error) { return x, nil })
	require.NoError(t, err)
	require.Equal(t, 1000, v)
	require.NoError(t, w.Drain(t.Context()))
}

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
