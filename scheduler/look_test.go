package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
	"github.com/ambit-go/ambit/scheduler"
)

// A worker is a part of its scope, with the future that it runs; those that queue say where.
func TestAPictureShowsWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		s := scheduler.New(scheduler.Goroutines())
		w := s.NewWorker(ctx, scheduler.Name("ledger"))
		end := make(chan struct{})
		wait := func(context.Context) (int, error) { <-end; return 0, nil }
		first, second := scheduler.Submit(w, wait), scheduler.Submit(w, wait)
		_, err := w.ScheduleAfter(time.Hour, func(context.Context) {})
		require.NoError(t, err)
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx))
		require.Len(t, pic.Parts, 1)
		p := pic.Parts[0]
		require.Equal(t, "worker ledger", p.Kind+" "+p.Name)
		require.Equal(t, []int{1, 1, 1}, []int{p.Places, p.Active, p.Queued})
		require.Equal(t, "1 delayed", p.State)
		require.Len(t, p.Runs, 1)
		queued := 0
		for _, n := range pic.Nodes {
			for _, wait := range n.Waits {
				if wait.How == picture.WayPart && wait.Part == 1 {
					queued++
					require.Equal(t, picture.StateQueued, n.State)
					require.NotEqual(t, p.Runs[0], n.ID)
				}
			}
		}
		require.Equal(t, 1, queued)
		require.Empty(t, pic.Rings)
		close(end)
		async.AwaitAll(ctx, 0, first, second)
		require.NoError(t, w.Close())
	})
}

// A task of a worker waits for a future that waits for the worker: no wait alone leads back to its
// worker, so none is refused.
func TestAPictureShowsARingThroughAWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		s := scheduler.New(scheduler.Goroutines())
		w := s.NewWorker(ctx, scheduler.Name("ledger"))
		begun := make(chan struct{})
		var runs *async.Future[int]
		caller := async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-begun
			time.Sleep(time.Second) // until the worker's task waits
			return scheduler.Call(ctx, w, one)
		}, async.Name("caller"))
		runs = scheduler.Submit(w, func(ctx context.Context) (int, error) {
			close(begun)
			return caller.Wait(ctx)
		})
		time.Sleep(time.Minute)
		pic := async.Snapshot(async.Of(ctx))
		require.Len(t, pic.Rings, 1)
		ring := pic.Rings[0]
		require.Len(t, ring.Waits, 3)
		through := 0
		for _, wait := range ring.Waits {
			if wait.How == picture.WayPart {
				through = wait.Part
			}
		}
		require.Equal(t, "ledger", pic.Parts[through-1].Name)
		caller.Cancel(nil)
		_, _ = runs.Wait(ctx)
		require.NoError(t, w.Close())
	})
}
