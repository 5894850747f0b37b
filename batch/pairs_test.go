package batch_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/scheduler"
)

// A batch beside what else a scope may have.

// Exit hooks that were registered after the batch was made run before it is closed.
// They may add and flush, and have no slot that the flush would need.
func TestAnExitHookMayFlushUnderALimitOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		uses := func(ctx context.Context) error {
			b := batch.New(ctx, s.flush)
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				add(t, ctx, b, 1)
				return b.Flush(ctx)
			})
			return nil
		}
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, uses)
			async.Go(ctx, func(ctx context.Context) error { return async.Scope(ctx, uses) })
			return nil
		}, async.Limit(1)))
		assert.Equal(t, []int{1, 1}, s.delivered())
	})
}

// A task that the last flush starts needs a slot. The task that opened the scope lends its.
func TestTheLastFlushMayStartTasksUnderALimitOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					b := batch.New(ctx, func(ctx context.Context, items []int) error {
						async.Go(ctx, func(context.Context) error { n += len(items); return nil })
						return nil
					})
					return b.Add(ctx, 1)
				})
			})
			return nil
		}, async.Limit(1)))
		assert.Equal(t, 1, n)
	})
}

// Each run of a task with Restart is a scope: its batch ends with it, and the next
// run makes another.
func TestABatchOfARunEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.fails = 3 // both flushes of the first run, and one of the second
		run := 0
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				run++
				b := batch.New(ctx, s.flush)
				add(t, ctx, b, run)
				return b.Flush(ctx)
			}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
			return nil
		}))
		assert.Equal(t, [][]int{{1}, {1}, {2}, {2}, {3}}, s.calls())
	})
}

// A shielded stretch whose time is up has its last flush, too.
func TestABatchOfAShieldIsFlushedWhenTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(2 * time.Second)
		limit := new(async.TimeoutError)
		require.ErrorAs(t, async.Shield(t.Context(), time.Second, func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(1))
			add(t, ctx, b, 1)
			<-ctx.Done() // cuts the first flush short
			add(t, ctx, b, 2)
			return nil
		}), &limit)
		assert.Equal(t, [][]int{{1}, {1, 2}}, s.calls())
		assert.Equal(t, []int{1, 2}, s.delivered())
	})
}

// A scope that leaves a flush behind leaves the batch, too: it is open until the
// flush has returned, and nothing is lost.
func TestABatchIsLeftBehindWithTheFlushThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, check := asynctest.Root(t.Context())
		var got []int
		busy, fails := false, true
		var b *batch.Batch[int]
		left := new(async.StragglerError)
		require.ErrorAs(t, async.Scope(root, func(ctx context.Context) error {
			b = batch.New(ctx, func(_ context.Context, items []int) error {
				assert.False(t, busy, "two flushes at a time")
				busy = true
				defer func() { busy, fails = false, false }()
				if time.Sleep(time.Minute); fails {
					return errDisk
				}
				got = append(got, items...)
				return nil
			}, batch.Items(1))
			add(t, ctx, b, 1)
			synctest.Wait()
			add(t, ctx, b, 2)
			return errStop
		}, async.DetachAfter(time.Second), async.HookTimeout(time.Hour)), &left)
		add(t, context.Background(), b, 3)
		time.Sleep(time.Hour)
		require.ErrorIs(t, check(), errDisk)
		assert.Equal(t, []int{1, 2, 3}, got)
		assert.ErrorIs(t, b.Add(context.Background(), 4), async.ErrScopeEnded)
	})
}

// A batch keeps its group, which nobody else holds, and an Age that is over wakes it.
func TestABatchOfAGroupThatNobodyHoldsIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(async.NewGroup(ctx).Context(), s.flush, batch.Age(time.Second))
			for range 3 {
				add(t, ctx, b, 1)
				runtime.GC()
				require.NoError(t, async.Sleep(ctx, 2*time.Second))
			}
			assert.Len(t, s.calls(), 3)
			add(t, ctx, b, 2)
			return nil
		}))
		assert.Equal(t, []int{1, 1, 1, 2}, s.delivered())
	})
}

// Flushes of two batches may add to each other: neither waits for the other.
func TestTwoBatchesMayAddToEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			var a, b *batch.Batch[int]
			a = batch.New(ctx, func(ctx context.Context, items []int) error { return b.Add(ctx, items...) }, batch.Items(1))
			b = batch.New(ctx, func(ctx context.Context, items []int) error {
				if got = append(got, items...); len(got) < 50 {
					return a.Add(ctx, len(got))
				}
				return nil
			}, batch.Items(1))
			return a.Add(ctx, 0)
		}))
		assert.Len(t, got, 50)
	})
}

// A worker of package scheduler that was made after the batch has done all that it
// was given before the batch is closed.
func TestAWorkerMayAddAndFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Capacity(2))
			w := scheduler.New(scheduler.Goroutines()).NewWorker(ctx)
			for i := range 6 {
				require.NoError(t, w.Post(func() { add(t, ctx, b, i) }))
			}
			return w.Post(func() { assert.NoError(t, b.Flush(ctx)) })
		}))
		assert.Equal(t, upTo(5), s.delivered()[1:])
	})
}

// Room may come just as the ctx of the Add that waits for it is done. Then the items
// are accepted and the error is nil, or neither.
func TestRoomThatComesWithTheEndOfTheCtxIsTakenOrRefused(t *testing.T) {
	for range 100 {
		var mu sync.Mutex
		var got, accepted []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(_ context.Context, items []int) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, items...)
				return nil
			}, batch.Capacity(2))
			for i := range 8 {
				short, cancel := context.WithCancel(ctx)
				async.Go(ctx, func(context.Context) error {
					for j := range 5 {
						if b.Add(short, 10*i+j) != nil {
							return nil
						}
						mu.Lock()
						accepted = append(accepted, 10*i+j)
						mu.Unlock()
					}
					return nil
				})
				async.Go(ctx, func(context.Context) error { runtime.Gosched(); cancel(); return nil })
			}
			return nil
		}))
		require.ElementsMatch(t, accepted, got)
	}
}
