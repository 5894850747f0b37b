package adopting

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/docs/adopting/byhand"
)

func TestAPollerIsStoppedByAnybodyAnyNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		var polls atomic.Int32
		p := NewPoller(ctx, time.Second, func(context.Context) error { polls.Add(1); return nil })
		require.NoError(t, p.Now())
		time.Sleep(3500 * time.Millisecond)
		var stops sync.WaitGroup
		for range 3 {
			stops.Go(func() { require.NoError(t, p.Stop(ctx)) })
		}
		stops.Wait()
		require.EqualValues(t, 4, polls.Load())
		require.ErrorIs(t, p.Now(), async.ErrScopeEnded)
	})
}

func TestAPollerThatFailsTellsTheOneWhoStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		p := NewPoller(ctx, time.Second, func(context.Context) error { return errTest })
		time.Sleep(time.Hour)
		require.ErrorIs(t, p.Stop(ctx), errTest)
	})
}

func TestAPollerThatNobodyStopsEndsWithItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			NewPoller(ctx, time.Second, func(context.Context) error { return nil })
			return async.Sleep(ctx, time.Minute)
		}))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestThePollerByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls atomic.Int32
		p := new(byhand.Poller)
		require.Panics(t, p.Stop, "the fault that the page lists")
		p.Start(t.Context(), time.Second, func(context.Context) { polls.Add(1) })
		time.Sleep(2500 * time.Millisecond)
		p.Stop()
		require.EqualValues(t, 3, polls.Load())
	})
}
