package batch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

func TestCapacityBlocksUntilThereIsRoom(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Second)
		add(t, ctx, b, 1, 2, 3, 4)
		assert.Zero(t, time.Since(s.begin))
		add(t, ctx, b, 5) // makes it due, and waits for that
		assert.Equal(t, time.Second, time.Since(s.begin))
		add(t, ctx, b, 6, 7, 8)
		assert.Equal(t, time.Second, time.Since(s.begin))
		return nil
	}, batch.Capacity(4), batch.Age(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1, 2, 3, 4}, {5, 6, 7, 8}}, s.calls())
}

// Items that are being flushed are held, too.
func TestCapacityCountsWhatIsBeingFlushed(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Second)
		add(t, ctx, b, 1, 2)
		synctest.Wait()
		assert.Equal(t, [][]int{{1, 2}}, s.calls())
		add(t, ctx, b, 3)
		assert.Zero(t, time.Since(s.begin))
		assert.NoError(t, b.Add(ctx, 4, 5))
		assert.Equal(t, time.Second, time.Since(s.begin))
		return nil
	}, batch.Items(2), batch.Capacity(4))
	require.NoError(t, err)
	assert.Equal(t, upTo(5), s.delivered())
}

// Waiting, being flushed, given back, delivered and lost.
func TestLenCountsWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batch.Batch[int]
		fails, inFlush := true, 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b = batch.New(ctx, func(context.Context, []int) error {
				inFlush = b.Len()
				time.Sleep(time.Second)
				if fails {
					return errors.New("not now")
				}
				return nil
			}, batch.Items(3), batch.Capacity(4))
			assert.Zero(t, b.Len())
			assert.NoError(t, b.Add(ctx, 1, 2))
			assert.Equal(t, 2, b.Len())
			async.Go(ctx, func(ctx context.Context) error { return b.Do(ctx, 3) }) // a flush starts at once
			synctest.Wait()
			assert.Equal(t, 3, inFlush)
			assert.NoError(t, b.Add(ctx, 4))
			assert.Equal(t, 4, b.Len())
			async.Go(ctx, func(ctx context.Context) error { return b.Add(ctx, 5) }) // waits for room
			synctest.Wait()
			assert.Equal(t, 4, b.Len())
			time.Sleep(1500 * time.Millisecond) // it has failed, and two items of Add are back beside the third
			assert.Equal(t, 3, b.Len())
			fails = false
			return nil
		}, async.OnFailure(func(error) error { return nil }))
		assert.NoError(t, err)
		assert.Zero(t, b.Len())
	})
}

func TestAddThatWaitsIsFreedByItsCtxAndAddsNothing(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Hour)
		add(t, ctx, b, 1, 2)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := b.Add(short, 3)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "no room for 1 of at most 2 items")
		assert.Equal(t, time.Second, time.Since(s.begin))
		return nil
	}, batch.Capacity(2))
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, s.delivered())
}

func TestAddThatWaitsIsFreedByTheEndOfTheBatchsCtx(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Minute)
		async.Go(ctx, func(ctx context.Context) error {
			add(t, ctx, b, 1, 2)
			err := b.Add(context.WithoutCancel(ctx), 3) // or the scope would wait for it, and it for the scope
			assert.ErrorIs(t, err, errStop)
			assert.Equal(t, time.Second, time.Since(s.begin))
			err = b.Add(context.WithoutCancel(ctx), 3)
			assert.ErrorIs(t, err, errStop)
			return nil
		})
		_ = async.Sleep(ctx, time.Second)
		s.slow(0)
		return errStop
	}, batch.Capacity(2))
	require.Equal(t, errStop, cause(err))
	assert.Equal(t, []int{1, 2}, s.delivered())
}

// cause returns the only error behind a ScopeError's echoes.
func cause(err error) error {
	if e, ok := err.(*async.ScopeError); ok && len(e.Errors) == 1 {
		return e.Errors[0]
	}
	return err
}

func TestAddThatWaitsIsToldOfTheFlushThatFails(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 1
		add(t, ctx, b, 1, 2)
		assert.ErrorIs(t, b.Add(ctx, 3), errDisk)
		return nil
	}, batch.Capacity(2))
	require.ErrorIs(t, err, errDisk)
	assert.Equal(t, [][]int{{1, 2}, {1, 2}}, s.calls())
}

// A goroutine that is no task of the scope may wait for room while it ends: here
// while the batch rests, because the scope carries on after a failure.
func TestAddThatWaitsIsToldThatTheBatchIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.fails = 1
		answer := make(chan error, 1)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(2), batch.Capacity(2))
			add(t, ctx, b, 1, 2)
			synctest.Wait()
			go func() { answer <- b.Add(context.Background(), 3) }()
			synctest.Wait()
			return nil
		}, async.OnFailure(func(error) error { return nil }))
		require.NoError(t, err)
		err = <-answer
		assert.ErrorIs(t, err, async.ErrScopeEnded)
		assert.ErrorContains(t, err, "batch: closed")
		assert.Equal(t, []int{1, 2}, s.delivered())
	})
}

// Nobody waits for a batch that rests: those who add are told at once.
func TestAddThatWaitsIsToldOfAFailureThatTheScopeSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.fails = 1
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Capacity(2))
			add(t, ctx, b, 1, 2)
			assert.Equal(t, errDisk, b.Add(ctx, 3))
			assert.Zero(t, time.Since(s.begin))
			add(t, ctx, b, 3) // waits until the batch has rested
			assert.Equal(t, time.Second, time.Since(s.begin))
			return nil
		}, async.OnFailure(func(error) error { return nil }))
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3}, s.delivered())
	})
}

func TestThoseThatWaitForRoomAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Capacity(4))
			add(t, ctx, b, 1, 2, 3)
			for _, items := range [][]int{{4, 5, 6}, {7}, {8, 9}, {10}} {
				async.Go(ctx, func(ctx context.Context) error { return b.Add(ctx, items...) })
				synctest.Wait() // the second would fit, and does not overtake
			}
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, upTo(10), s.delivered())
	})
}

// The one at the head needs more than there is. When it gives up, those behind it
// that need less go on at once.
func TestOneThatGivesUpLetsThoseBehindItGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Hour)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Capacity(4))
			add(t, ctx, b, 1, 2)
			async.Go(ctx, func(ctx context.Context) error {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				assert.Error(t, b.Add(short, 90, 91, 92))
				return nil
			})
			synctest.Wait()
			add(t, ctx, b, 3)
			assert.Equal(t, time.Second, time.Since(s.begin))
			s.slow(0)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3}, s.delivered())
	})
}

func TestMoreItemsThanTheCapacityAreRefused(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], _ *sink) error {
		err := b.Add(ctx, upTo(11)...)
		assert.ErrorIs(t, err, batch.ErrTooMany)
		assert.ErrorContains(t, err, "11 items, 10 fit")
		return b.Add(ctx, upTo(10)...)
	}, batch.Capacity(10))
	require.NoError(t, err)
	assert.Equal(t, upTo(10), s.delivered(), "all or none")
}

func TestAddInsideFlushAddsToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batch.Batch[int]
		var calls [][]int
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b = batch.New(ctx, func(ctx context.Context, items []int) error {
				calls = append(calls, slices.Clone(items))
				if items[0] < 3 {
					assert.NoError(t, b.Add(ctx, items[0]+1))
				}
				return nil
			}, batch.Items(1), batch.Capacity(2))
			return b.Add(ctx, 1)
		})
		require.NoError(t, err)
		assert.Equal(t, [][]int{{1}, {2}, {3}}, calls)
	})
}

func TestAddInsideFlushThatWouldWaitForItselfIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batch.Batch[int]
		got := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b = batch.New(ctx, func(ctx context.Context, items []int) error {
				got += len(items)
				err := b.Add(ctx, 3)
				assert.ErrorIs(t, err, async.ErrAwaitCycle)
				assert.ErrorContains(t, err, "Add without room inside flush")
				return nil
			}, batch.Items(2), batch.Capacity(2))
			add(t, ctx, b, 1, 2)
			return async.Sleep(ctx, time.Minute)
		})
		require.NoError(t, err)
		assert.Equal(t, 2, got)
	})
}

func TestAddInsideTheLastFlushIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batch.Batch[int]
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b = batch.New(ctx, func(ctx context.Context, items []int) error {
				assert.ErrorIs(t, b.Add(ctx, 2), async.ErrScopeEnded)
				return nil
			})
			return b.Add(ctx, 1)
		})
		require.NoError(t, err)
	})
}

// A task that waits lends its slot: a flush needs one, too.
func TestAddAndFlushLendTheirSlotOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Capacity(2))
			for i := range 5 {
				async.Go(ctx, func(ctx context.Context) error {
					if err := b.Add(ctx, 2*i+1, 2*i+2); err != nil {
						return err
					}
					return b.Flush(ctx)
				})
			}
			return nil
		}, async.Limit(1))
		require.NoError(t, err)
		assert.Len(t, s.delivered(), 10)
	})
}

// A flush has failed with an item of Add, and answered one of Do: that has made room for another.
func TestDoIsLetInWhereAFlushThatHasFailedHasMadeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			refuses := true
			b := batch.NewAnswering(ctx, func(_ context.Context, items []int) []error {
				time.Sleep(time.Second)
				answers := make([]error, len(items))
				if items[0] == 1 && refuses {
					answers[0] = errDisk
				}
				return answers
			}, batch.Capacity(2))
			require.NoError(t, b.Add(ctx, 1))
			second := async.Start(ctx, func(ctx context.Context) error { return b.Do(ctx, 2) })
			synctest.Wait() // the flush of both is under way
			third := async.Start(ctx, func(ctx context.Context) error { return b.Do(ctx, 3) })
			_, err := second.Await(ctx, time.Minute)
			require.NoError(t, err)
			_, err = third.Await(ctx, time.Minute)
			assert.NoError(t, err)
			refuses = false
			return nil
		}, async.OnFailure(func(error) error { return nil })))
	})
}
