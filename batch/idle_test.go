package batch

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// stopTimer reports whether the timer of b was set, and stops it.
func stopTimer[T any](b *Batch[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.timer != nil && b.timer.Stop()
}

func TestNoTimerIsSetWhileTheBatchIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *Batch[int]
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b = New(ctx, func(context.Context, []int) error { return nil }, Items(3), Age(time.Minute))
			assert.False(t, stopTimer(b), "nothing was ever added")

			require.NoError(t, b.Add(ctx, 1))
			assert.True(t, stopTimer(b), "this one waits for its age")
			require.NoError(t, b.Add(ctx, 2, 3))
			synctest.Wait()
			assert.False(t, stopTimer(b), "flushed for the number")

			require.NoError(t, b.Add(ctx, 4))
			require.NoError(t, b.Flush(ctx))
			assert.False(t, stopTimer(b), "flushed because somebody asked")

			require.NoError(t, b.Add(ctx, 5))
			require.NoError(t, async.Sleep(ctx, 2*time.Minute))
			assert.False(t, stopTimer(b), "flushed for the age")
			return b.Add(ctx, 6)
		})
		require.NoError(t, err)
		assert.False(t, stopTimer(b), "flushed at the end")
	})
}

func TestAnIdleBatchHasNoGoroutineAndKeepsNoItems(t *testing.T) {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		before := runtime.NumGoroutine()
		b := New(ctx, func(context.Context, []int) error { return nil }, Items(1000))
		for range 100 {
			for i := range 1000 {
				require.NoError(t, b.Add(ctx, i))
			}
			require.NoError(t, b.Flush(ctx))
		}
		for runtime.NumGoroutine() > before { // the last flusher has been told of by Flush before it ends
			runtime.Gosched()
		}
		assert.Nil(t, b.items)
		assert.Empty(t, b.adders)
		assert.Empty(t, b.flushers)
		return nil
	})
	require.NoError(t, err)
}

// A batch that has lived for a long time keeps nothing of what it has flushed, nor
// of those who have waited.
func TestWhatIsOverIsNotKept(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	synctest.Test(t, func(t *testing.T) {
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, func(context.Context, []*[1024]byte) error { return nil }, Age(time.Second), Capacity(2))
			var before uint64
			for i := range 5_000 {
				if i == 100 {
					before = heap()
				}
				for range 3 { // the third waits for room
					require.NoError(t, b.Add(ctx, new([1024]byte)))
				}
				if i%3 == 0 {
					require.NoError(t, b.Flush(ctx))
				}
				require.NoError(t, async.Sleep(ctx, 2*time.Second))
			}
			assert.Less(t, heap(), before+256<<10)
			return nil
		})
		require.NoError(t, err)
	})
}

// A ctx of a flush may be kept, as by a connection. It keeps no items.
func TestACtxOfAFlushThatIsKeptKeepsNoItems(t *testing.T) {
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		var kept []context.Context
		gone := make(chan struct{}, 2)
		b := New(ctx, func(ctx context.Context, _ []*[1024]byte) error {
			kept = append(kept, ctx)
			return nil
		})
		item := func() *[1024]byte {
			p := new([1024]byte)
			runtime.AddCleanup(p, func(gone chan struct{}) { gone <- struct{}{} }, gone)
			return p
		}
		require.NoError(t, b.Add(ctx, item()))
		require.NoError(t, b.Flush(ctx))
		require.NoError(t, b.Do(ctx, item()))
		for n := 0; n < 1000 && len(gone) < 2; n++ {
			runtime.GC()
			runtime.Gosched()
		}
		assert.Len(t, gone, 2)
		runtime.KeepAlive(kept)
		return nil
	}))
}
