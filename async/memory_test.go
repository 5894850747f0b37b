package async_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// memSlack is how much larger than at the start the heap may be, in bytes. The
// planted leak below is found with it.
const memSlack = 4 << 20

// memGrowth returns how much larger the heap is after f, in bytes.
func memGrowth(f func()) int64 {
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what has a finalizer or sits in a pool goes in the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	f()
	return heap() - before
}

func TestAMillionAwaitsInOneScopeLeaveNothing(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		grown := memGrowth(func() {
			for range 1_000_000 / raceFactor {
				_, _ = async.Execute(ctx, answer).Await(ctx, time.Minute)
			}
		})
		require.Less(t, grown, int64(memSlack))
		return nil
	})
	require.NoError(t, err)
}

func TestAMillionRootedAwaitsLeaveNothing(t *testing.T) {
	grown := memGrowth(func() {
		for range 1_000_000 / raceFactor {
			_, _ = async.Execute(t.Context(), answer).Await(t.Context(), 0)
		}
	})
	require.Less(t, grown, int64(memSlack))
}

func TestAHundredThousandTasksAtOnceLeaveNothing(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		grown := memGrowth(func() {
			gate := make(chan struct{})
			futures := make([]*async.Future[int], 100_000/raceFactor)
			for i := range futures {
				futures[i] = async.Execute(ctx, func(ctx context.Context) (int, error) {
					<-gate
					return 42, nil
				})
			}
			close(gate)
			for _, r := range async.AwaitAll(ctx, 0, futures...) {
				require.Equal(t, 42, r.Value)
			}
		})
		require.Less(t, grown, int64(memSlack)+100_000*1_024, "goroutines' own memory is kept by the runtime")
		return nil
	})
	require.NoError(t, err)
}

// TestExpiredWaitsDoNotPileUp awaits a task that never settles, over and over.
func TestExpiredWaitsDoNotPileUp(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		stop := make(chan struct{})
		stubborn := async.Execute(ctx, func(context.Context) (int, error) {
			<-stop
			return 0, nil
		})
		grown := memGrowth(func() {
			for range 50_000 / raceFactor {
				short, cancel := context.WithCancel(ctx)
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = stubborn.Wait(short) })
				cancel()
				wg.Wait()
				_, _ = stubborn.Await(ctx, -1)
			}
		})
		close(stop)
		require.Less(t, grown, int64(memSlack))
		return nil
	})
	require.NoError(t, err)
}

// TestManyScopesWithLimitsLeaveNothing is about timers: an hour's limit must
// not outlive the scope of the wait it was for.
func TestManyScopesWithLimitsLeaveNothing(t *testing.T) {
	const scopes = 20_000 // not fewer with the race detector: the leak must show
	grown := memGrowth(func() {
		for range scopes {
			err := async.Scope(t.Context(), func(ctx context.Context) error {
				_, err := async.Execute(ctx, answer).Await(ctx, time.Hour)
				return err
			})
			require.NoError(t, err)
		}
	})
	require.Less(t, grown, int64(memSlack))
}

// TestAPlantedMemoryLeakIsFound shows that the check can fail.
func TestAPlantedMemoryLeakIsFound(t *testing.T) {
	var kept []*async.Future[[1024]byte]
	grown := memGrowth(func() {
		for range 8_000 { // not fewer with the race detector: the leak must show
			f := async.Execute(t.Context(), func(context.Context) (v [1024]byte, err error) { return v, nil })
			_, _ = f.Await(t.Context(), 0)
			kept = append(kept, f)
		}
	})
	require.Greater(t, grown, int64(memSlack))
	runtime.KeepAlive(kept)
}
