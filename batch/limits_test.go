package batch_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

func TestItemsAloneMakesABatchDue(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, 1, 2)
		require.NoError(t, async.Sleep(ctx, time.Hour))
		assert.Empty(t, s.calls(), "two of three")
		add(t, ctx, b, 3)
		synctest.Wait()
		assert.Equal(t, [][]int{{1, 2, 3}}, s.calls())
		add(t, ctx, b, 4)
		return nil
	}, batch.Items(3))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1, 2, 3}, {4}}, s.calls(), "the rest is flushed at the end")
}

func TestSizeAloneMakesABatchDue(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, 40, 59)
		synctest.Wait()
		assert.Empty(t, s.calls(), "99 of 100")
		add(t, ctx, b, 1)
		synctest.Wait()
		assert.Equal(t, [][]int{{40, 59, 1}}, s.calls())
		add(t, ctx, b, 99, -1000)
		synctest.Wait()
		assert.Len(t, s.calls(), 1, "a size below 0 counts as 0")
		return nil
	}, batch.Size(100, func(i int) int { return i }))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{40, 59, 1}, {99, -1000}}, s.calls())
}

func TestAnItemLargerThanTheSizeIsFlushedAtOnce(t *testing.T) {
	_, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, 1, 5000)
		synctest.Wait()
		assert.Equal(t, [][]int{{1, 5000}}, s.calls())
		assert.NoError(t, b.Add(ctx, math.MaxInt, math.MaxInt), "sizes do not overflow")
		synctest.Wait()
		assert.Len(t, s.calls(), 2)
		return nil
	}, batch.Size(100, func(i int) int { return i }))
	require.NoError(t, err)
}

func TestAgeAloneMakesABatchDue(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		for i, pause := range []time.Duration{0, 300, 699, 5000} {
			require.NoError(t, async.Sleep(ctx, pause*time.Millisecond))
			add(t, ctx, b, i)
		}
		return async.Sleep(ctx, time.Minute)
	}, batch.Age(time.Second))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{0, 1, 2}, {3}}, s.calls())
	assert.Equal(t, []time.Duration{time.Second, 6999 * time.Millisecond}, s.at)
}

// A timer that every item starts again never comes to its end while items keep
// coming. An item every 80 ms, with an age of 100 ms, for ten minutes.
func TestAgeIsThatOfTheOldestUnderSteadyAdds(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], _ *sink) error {
		for i := range 7500 {
			add(t, ctx, b, i)
			if err := async.Sleep(ctx, 80*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}, batch.Age(100*time.Millisecond))
	require.NoError(t, err)
	last := -60 * time.Millisecond
	for _, at := range s.at {
		require.Equal(t, last+160*time.Millisecond, at)
		last = at
	}
	assert.Len(t, s.got, 7500)
	assert.Len(t, s.at, 3750)
}

// An item that is added while a flush runs has waited that long when the flush is over.
func TestAgeRunsOnDuringAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(700 * time.Millisecond)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Age(time.Second))
			add(t, ctx, b, 1)
			require.NoError(t, async.Sleep(ctx, 1200*time.Millisecond))
			add(t, ctx, b, 2) // the flush of 1 s runs until 1.7 s
			require.NoError(t, async.Sleep(ctx, 1100*time.Millisecond))
			s.slow(5 * time.Second)
			add(t, ctx, b, 3)
			require.NoError(t, async.Sleep(ctx, 2*time.Second))
			add(t, ctx, b, 4) // the flush of 3.3 s runs until 8.3 s
			return async.Sleep(ctx, time.Minute)
		})
		require.NoError(t, err)
		assert.Equal(t, [][]int{{1}, {2}, {3}, {4}}, s.calls())
		assert.Equal(t, []time.Duration{1000, 2200, 3300, 8300}, millis(s.at), "the last is due at 5.3 s, and waits for the flush before it")
	})
}

func millis(ds []time.Duration) (ms []time.Duration) {
	for _, d := range ds {
		ms = append(ms, d/time.Millisecond)
	}
	return ms
}

func TestTheFirstLimitThatIsReachedCounts(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], _ *sink) error {
		add(t, ctx, b, 1, 1, 1) // items
		require.NoError(t, async.Sleep(ctx, 3*time.Second))
		add(t, ctx, b, 50) // size
		require.NoError(t, async.Sleep(ctx, 3*time.Second))
		add(t, ctx, b, 1) // age
		return async.Sleep(ctx, time.Minute)
	}, batch.Items(3), batch.Size(50, func(i int) int { return i }), batch.Age(time.Second))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1, 1, 1}, {50}, {1}}, s.calls())
	assert.Equal(t, []time.Duration{0, 3000, 7000}, millis(s.at))
}

func TestWithoutLimitsOnlyTheEndFlushes(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, upTo(10_000)...)
		require.NoError(t, async.Sleep(ctx, 365*24*time.Hour))
		assert.Empty(t, s.calls())
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, [][]int{upTo(10_000)}, s.calls())
}

func TestNothingAddedNothingFlushed(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], _ *sink) error {
		assert.NoError(t, b.Add(ctx))
		assert.NoError(t, b.Flush(ctx))
		return async.Sleep(ctx, time.Hour)
	}, batch.Items(1), batch.Age(time.Second), batch.Size(1, func(int) int { return 0 }))
	require.NoError(t, err)
	assert.Empty(t, s.calls())
}

// More than n are given to one flush when they were added while another one ran.
func TestAFlushIsGivenEverythingThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(2))
			add(t, ctx, b, 1, 2)
			synctest.Wait()
			add(t, ctx, b, 3, 4, 5, 6, 7)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, [][]int{{1, 2}, {3, 4, 5, 6, 7}}, s.calls())
	})
}
