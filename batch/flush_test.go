package batch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

func TestFlushDoesNotWaitForTheAge(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, 1, 2)
		require.NoError(t, b.Flush(ctx))
		assert.Equal(t, []int{1, 2}, s.delivered(), "delivered when Flush returns")
		return nil
	}, batch.Items(100), batch.Age(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0}, s.at)
}

func TestFlushWaitsForTheFlushUnderWayAndForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(2))
			add(t, ctx, b, 1, 2)
			synctest.Wait()
			require.NoError(t, b.Flush(ctx))
			assert.Equal(t, []int{1, 2}, s.delivered(), "nothing else was added")

			add(t, ctx, b, 3, 4)
			synctest.Wait()
			add(t, ctx, b, 5)
			require.NoError(t, b.Flush(ctx))
			assert.Equal(t, []int{1, 2, 3, 4, 5}, s.delivered())
			assert.Equal(t, 3*time.Second, time.Since(s.begin))
			return nil
		})
		require.NoError(t, err)
	})
}

// Items that are added later need not be delivered, so producers that never stop do not
// hold a Flush up.
func TestFlushWaitsOnlyForWhatWasAddedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush)
			async.Go(ctx, func(ctx context.Context) error {
				for i := 1; ; i++ {
					add(t, ctx, b, i)
					if err := async.Sleep(ctx, 10*time.Millisecond); err != nil {
						return nil
					}
				}
			}, async.Daemon())
			require.NoError(t, async.Sleep(ctx, time.Second-time.Millisecond))
			require.NoError(t, b.Flush(ctx))
			assert.Equal(t, upTo(100), s.delivered())
			assert.Equal(t, 2*time.Second-time.Millisecond, time.Since(s.begin))
			return nil
		})
		require.NoError(t, err)
	})
}

func TestManyFlushesShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush)
			for i := range 100 {
				async.Go(ctx, func(ctx context.Context) error {
					add(t, ctx, b, i)
					return b.Flush(ctx)
				})
			}
			return nil
		})
		require.NoError(t, err)
		assert.Len(t, s.delivered(), 100)
		assert.LessOrEqual(t, len(s.calls()), 2, "one that has begun when the first asked, and one for the rest")
	})
}

func TestFlushIsCutShortByItsCtxAndTheItemsAreDeliveredAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Hour)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush)
			add(t, ctx, b, 1)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorIs(t, b.Flush(short), context.DeadlineExceeded)
			assert.Equal(t, time.Second, time.Since(s.begin))
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, []int{1}, s.delivered())
		assert.Len(t, s.calls(), 1, "it was not begun again")
	})
}

func TestFlushReturnsTheErrorOfTheFlush(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 1
		add(t, ctx, b, 1)
		require.ErrorIs(t, b.Flush(ctx), errDisk)
		return nil
	})
	assert.Equal(t, errDisk, err, "the scope's error, once")
	assert.Equal(t, []int{1}, s.delivered())
}

func TestFlushInAScopeThatIsCancelled(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			add(t, ctx, b, 1)
			err := b.Flush(context.WithoutCancel(ctx))
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, errStop)
			return err
		})
		return errStop
	})
	assert.Equal(t, errStop, err, "what Flush has returned is an echo")
	assert.Equal(t, []int{1}, s.delivered(), "by the last flush")
}

func TestFlushInsideFlushIsToldThatItWouldWaitForItself(t *testing.T) {
	for name, inside := range map[string]func(ctx context.Context, b *batch.Batch[int]) error{
		"directly": func(ctx context.Context, b *batch.Batch[int]) error { return b.Flush(ctx) },
		"in a task": func(ctx context.Context, b *batch.Batch[int]) error {
			_, err := async.Start(ctx, b.Flush).Join(ctx)
			return err
		},
		"without cancel": func(ctx context.Context, b *batch.Batch[int]) error { return b.Flush(context.WithoutCancel(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b *batch.Batch[int]
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					b = batch.New(ctx, func(ctx context.Context, _ []int) error {
						err := inside(ctx, b)
						assert.ErrorIs(t, err, async.ErrAwaitCycle)
						assert.ErrorContains(t, err, "Flush inside flush would wait for itself")
						return nil
					})
					add(t, ctx, b, 1)
					return b.Flush(ctx)
				})
				require.NoError(t, err)
			})
		})
	}
}

// A flush that is over is no longer inside.
func TestATaskThatOutlivesItsFlushMayFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *batch.Batch[int]
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			first := true
			b = batch.New(ctx, func(ctx context.Context, _ []int) error {
				if first {
					first = false
					async.Detach(ctx, "later", func(ctx context.Context) error {
						if err := async.Sleep(ctx, time.Second); err != nil {
							return err
						}
						assert.NoError(t, b.Add(ctx, 2))
						assert.NoError(t, b.Flush(ctx))
						return nil
					})
				}
				return nil
			})
			add(t, ctx, b, 1)
			require.NoError(t, b.Flush(ctx))
			return async.Sleep(ctx, time.Minute)
		})
		require.NoError(t, err)
	})
}
