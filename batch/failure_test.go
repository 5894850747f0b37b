package batch_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

func TestAFlushThatFailsFailsTheScopeAndItsItemsComeFirstInTheLastOne(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 1
		s.slow(time.Second)
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			assert.Equal(t, errDisk, context.Cause(ctx))
			assert.Equal(t, time.Second, time.Since(s.begin), "at once")
			add(t, ctx, b, 4) // a last word
			return nil
		})
		add(t, ctx, b, 1, 2)
		synctest.Wait()
		add(t, ctx, b, 3) // while it is being flushed
		return nil
	}, batch.Items(2))
	assert.Equal(t, errDisk, err)
	assert.Equal(t, [][]int{{1, 2}, {1, 2, 3, 4}}, s.calls())
	assert.Equal(t, []int{1, 2, 3, 4}, s.delivered())
}

// However often something is due between the failure and the end.
func TestAfterAFailureOnlyTheLastFlushFollows(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 1
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			for i := range 100 {
				add(t, ctx, b, 2+i)
				assert.Error(t, b.Flush(ctx))
			}
			return async.Shield(ctx, time.Hour, func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
		})
		add(t, ctx, b, 1)
		return nil
	}, batch.Items(1), batch.Age(time.Second))
	assert.Equal(t, errDisk, err)
	assert.Equal(t, [][]int{{1}, upTo(101)}, s.calls())
}

func TestWhatBothFlushesFailAtIsLostAndTold(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.fails = 2
		add(t, ctx, b, 1, 2)
		return nil
	}, batch.Items(2))
	require.ErrorIs(t, err, errDisk)
	lost := new(batch.LostError[int])
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, []int{1, 2}, lost.Items)
	assert.Equal(t, errDisk, lost.Err)
	assert.Equal(t, "batch: 2 items lost: disk full", lost.Error())
	assert.Empty(t, s.delivered())
}

// The scope decides with OnFailure. If it carries on, the batch tries again, but
// not in a loop, and in order.
func TestInAScopeThatCarriesOnTheBatchTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.fails = 3
		asked := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(2))
			for i := range 500 { // each second one would be due
				add(t, ctx, b, i+1)
				require.NoError(t, async.Sleep(ctx, 7*time.Millisecond))
			}
			assert.Len(t, s.delivered(), 500)
			return nil
		}, async.OnFailure(func(err error) error {
			assert.Equal(t, errDisk, err)
			asked++
			return nil
		}))
		require.NoError(t, err)
		assert.Equal(t, 3, asked)
		assert.Equal(t, upTo(500), s.delivered())
		assert.Equal(t, []time.Duration{7, 1007, 2007, 3007}, millis(s.at[:4]), "a second between them")
	})
}

func TestAPanicOfFlushIsRaisedByTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		first := true
		var told *async.PanicError
		func() {
			defer func() { told, _ = recover().(*async.PanicError) }()
			_ = async.Scope(t.Context(), func(ctx context.Context) error {
				b := batch.New(ctx, func(ctx context.Context, items []int) error {
					if first {
						first = false
						panic("boom")
					}
					return s.flush(ctx, items)
				}, batch.Items(1))
				async.Go(ctx, func(ctx context.Context) error {
					<-ctx.Done() // it is cancelled at once
					return nil
				})
				add(t, ctx, b, 1)
				assert.Error(t, b.Flush(ctx), "nobody waits for ever")
				return nil
			})
		}()
		require.NotNil(t, told)
		assert.Equal(t, "boom", told.Value)
		assert.Equal(t, []int{1}, s.delivered(), "it was not delivered before")
	})
}

func TestGoexitOfFlushFailsTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		first := true
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, items []int) error {
				if first {
					first = false
					runtime.Goexit()
				}
				return s.flush(ctx, items)
			})
			add(t, ctx, b, 1)
			assert.Error(t, b.Flush(ctx))
			return nil
		})
		require.ErrorIs(t, err, async.ErrGoexit)
		assert.Equal(t, []int{1}, s.delivered())
	})
}

// Items that the last flush was given are told, also if that panics or exits.
func TestItemsOfALastFlushThatDoesNotReturnAreLost(t *testing.T) {
	for name, bad := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					b := batch.New(ctx, func(context.Context, []int) error {
						bad()
						return nil
					})
					add(t, ctx, b, 1, 2)
					return nil
				})
				lost := new(batch.LostError[int])
				require.ErrorAs(t, err, &lost)
				assert.Equal(t, []int{1, 2}, lost.Items)
				if name == "panic" {
					told := new(async.PanicError)
					require.ErrorAs(t, err, &told)
					assert.Equal(t, "boom", told.Value)
				} else {
					assert.ErrorIs(t, err, async.ErrGoexit)
				}
			})
		})
	}
}

// A flush that was cut short by the cancellation is made up for, and what it has
// returned is no failure.
func TestAnEchoOfTheCancellationIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		err := async.Scope(ctx, func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(2))
			add(t, ctx, b, 1, 2)
			synctest.Wait()
			add(t, ctx, b, 3)
			cancel(errStop)
			return nil
		})
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, errStop)
		told := new(async.ScopeError)
		require.ErrorAs(t, err, &told)
		assert.Empty(t, told.Errors)
		assert.Equal(t, []int{1, 2, 3}, s.delivered())
		assert.Len(t, s.calls(), 2)
	})
}

// A task that a flush starts is part of it: it is joined, and its failure is the flush's.
func TestWhatAFlushStartsIsPartOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, calls int
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, items []int) error {
				assert.Zero(t, running, "the last one has ended")
				calls++
				fails := calls == 2
				running++
				async.Go(ctx, func(ctx context.Context) error {
					defer func() { running-- }()
					if err := async.Sleep(ctx, time.Second); err != nil || fails {
						return errors.Join(errDisk, err)
					}
					return s.flush(ctx, items)
				})
				return nil
			}, batch.Items(1))
			add(t, ctx, b, 1)
			synctest.Wait()
			add(t, ctx, b, 2)
			return nil
		})
		require.ErrorIs(t, err, errDisk)
		assert.Equal(t, []int{1, 2}, s.delivered())
		assert.Equal(t, 3, calls)
	})
}
