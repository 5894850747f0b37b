package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A record says when batches were flushed, and how much each time.
type record struct {
	begin time.Time
	held  atomic.Int64
	at    []time.Duration
	n     []int64
}

// since is exact but for the nanosecond that an Await waits on at its end, so
// that whatever is due at the same instant is done before it.
func since(t time.Time) time.Duration { return time.Since(t).Truncate(time.Microsecond) }

func newRecord() *record { return &record{begin: time.Now()} }

func (r *record) flush(context.Context) error {
	r.at = append(r.at, since(r.begin))
	r.n = append(r.n, r.held.Swap(0))
	return nil
}

func (r *record) add(b *Batch, n int) {
	r.held.Add(int64(n))
	b.Added(n)
}

// inBubble runs body in a scope with a batch, on a fake clock.
func inBubble(t *testing.T, limits Limits, body func(ctx context.Context, b *Batch, r *record) error, opts ...async.ScopeOption) (r *record, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r = newRecord()
		err = async.Scope(t.Context(), func(ctx context.Context) error {
			return body(ctx, New(ctx, limits, r.flush), r)
		}, opts...)
	})
	return r, err
}

// The fault that this package exists for: a line each half second, for five
// minutes, and the timer must fire all the same.
func TestAgeIsThatOfTheOldestByteWhileLinesKeepComing(t *testing.T) {
	r, err := inBubble(t, Limits{Age: time.Second}, func(ctx context.Context, b *Batch, r *record) error {
		for range 600 {
			r.add(b, 1)
			if err := async.Sleep(ctx, 500*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	// Lines and flushes share their instants, so whether a line is in the batch
	// of its instant or in the next is open; that none waits longer is not.
	assert.GreaterOrEqual(t, len(r.at), 200)
	last := time.Duration(0)
	for _, at := range r.at {
		assert.LessOrEqual(t, at-last, 1500*time.Millisecond) // half a second until a line, then its age
		last = at
	}
}

func TestAgeCountsFromTheFirstByte(t *testing.T) {
	r, err := inBubble(t, Limits{Age: time.Second}, func(ctx context.Context, b *Batch, r *record) error {
		for _, pause := range []time.Duration{0, 300, 699, 5000} {
			if err := async.Sleep(ctx, pause*time.Millisecond); err != nil {
				return err
			}
			r.add(b, 10)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{time.Second, 5999 * time.Millisecond}, r.at)
	assert.Equal(t, []int64{30, 10}, r.n, "the last is flushed at the end, which is at once")
}

func TestSizeMakesItDueAtOnce(t *testing.T) {
	r, err := inBubble(t, Limits{Size: 100, Age: time.Hour}, func(ctx context.Context, b *Batch, r *record) error {
		r.add(b, 99)
		synctest.Wait()
		assert.Empty(t, r.at)
		r.add(b, 1)
		synctest.Wait()
		assert.Equal(t, []int64{100}, r.n)
		r.add(b, 1000)
		synctest.Wait()
		assert.Equal(t, []int64{100, 1000}, r.n)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0, 0}, r.at)
}

func TestNothingAddedNothingFlushed(t *testing.T) {
	r, err := inBubble(t, Limits{Size: 1, Age: time.Second}, func(ctx context.Context, b *Batch, _ *record) error {
		b.Added(0)
		return async.Sleep(ctx, time.Hour)
	})
	require.NoError(t, err)
	assert.Empty(t, r.at)
}

func TestWithoutLimitsOnlyTheEndFlushes(t *testing.T) {
	r, err := inBubble(t, Limits{}, func(ctx context.Context, b *Batch, r *record) error {
		for range 10 {
			r.add(b, 1<<20)
			if err := async.Sleep(ctx, time.Minute); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []int64{10 << 20}, r.n)
	assert.Equal(t, []time.Duration{10 * time.Minute}, r.at)
}

func TestNewAgeHoldsForWhatWaitsAlready(t *testing.T) {
	r, err := inBubble(t, Limits{Age: time.Hour}, func(ctx context.Context, b *Batch, r *record) error {
		r.add(b, 1)
		if err := async.Sleep(ctx, 10*time.Second); err != nil {
			return err
		}
		b.SetAge(30 * time.Second)
		if err := async.Sleep(ctx, time.Hour); err != nil {
			return err
		}
		r.add(b, 1)
		b.SetAge(time.Hour)
		return async.Sleep(ctx, 30*time.Minute)
	})
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{30 * time.Second, 90*time.Minute + 10*time.Second}, r.at)
}

// What comes while a flush is under way is the next batch, as old as it is by
// then.
func TestAgeRunsOnDuringAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		running := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, Limits{Age: time.Second}, func(ctx context.Context) error {
				running++
				assert.Equal(t, 1, running, "flushes overlap")
				at = append(at, since(begin))
				err := async.Sleep(ctx, 700*time.Millisecond)
				running--
				return err
			})
			b.Added(1)
			if err := async.Sleep(ctx, 1200*time.Millisecond); err != nil {
				return err
			}
			b.Added(1) // the flush of 1 s runs until 1.7 s
			return async.Sleep(ctx, 10*time.Second)
		})
		require.NoError(t, err)
		assert.Equal(t, []time.Duration{time.Second, 2200 * time.Millisecond}, at)
	})
}

var errStop = errors.New("stop")

func TestEndFlushesTheRestAlsoAfterACancellation(t *testing.T) {
	r, err := inBubble(t, Limits{Age: time.Hour}, func(ctx context.Context, b *Batch, r *record) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			r.add(b, 5) // a last word
			return nil
		})
		r.add(b, 1)
		return errStop
	})
	require.ErrorIs(t, err, errStop)
	assert.Equal(t, []int64{6}, r.n)
}

func TestLastFlushIsNotCancelledAndHasABudget(t *testing.T) {
	const budget = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			New(ctx, Limits{}, func(ctx context.Context) error {
				assert.NoError(t, ctx.Err())
				<-ctx.Done() // a receiver that hangs
				return context.Cause(ctx)
			}).Added(1)
			return errStop
		}, async.HookTimeout(budget))
		require.ErrorIs(t, err, errStop)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, budget, time.Since(begin))
	})
}

// A flush that the cancellation has cut short has not happened: the last one
// makes up for it.
func TestFlushCutShortIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, complete int
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, Limits{Size: 1}, func(ctx context.Context) error {
				calls++
				if err := async.Sleep(ctx, time.Second); err != nil {
					return err
				}
				complete++
				return nil
			})
			b.Added(1)
			synctest.Wait()
			return errStop
		})
		require.ErrorIs(t, err, errStop)
		assert.Equal(t, 2, calls)
		assert.Equal(t, 1, complete)
	})
}

func TestFailingFlushFailsTheScope(t *testing.T) {
	errFull := errors.New("disk full")
	synctest.Test(t, func(t *testing.T) {
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			New(ctx, Limits{Size: 1}, func(context.Context) error { return errFull }).Added(1)
			return async.Sleep(ctx, time.Hour)
		})
		require.ErrorIs(t, err, errFull)
	})
}

func TestAddedAfterTheEndIsHarmless(t *testing.T) {
	r, err := inBubble(t, Limits{Size: 1, Age: 1}, func(context.Context, *Batch, *record) error { return nil })
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var b *Batch
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b = New(ctx, Limits{Size: 1}, r.flush)
			return nil
		}))
		b.Added(10)
		b.SetAge(1)
	})
	assert.Empty(t, r.at)
}

// Many add at once; nothing of it is forgotten.
func TestManyWriters(t *testing.T) {
	var held, flushed atomic.Int64
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		b := New(ctx, Limits{Size: 64, Age: time.Millisecond}, func(context.Context) error {
			flushed.Add(held.Swap(0))
			return nil
		})
		for range 8 {
			async.Go(ctx, func(context.Context) error {
				for range 2000 {
					held.Add(1)
					b.Added(1)
				}
				return nil
			})
		}
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, int64(16000), flushed.Load())
}
