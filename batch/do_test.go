package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

// do has each of items done by a task of its own, in order, and returns their futures.
func do(ctx context.Context, b *batch.Batch[int], items ...int) (calls []*async.Future[struct{}]) {
	for _, item := range items {
		calls = append(calls, async.Start(ctx, func(ctx context.Context) error { return b.Do(ctx, item) }))
		synctest.Wait()
	}
	return calls
}

// told returns what each of calls has returned.
func told(ctx context.Context, calls []*async.Future[struct{}]) (errs []error) {
	for _, call := range calls {
		_, err := call.Join(ctx)
		errs = append(errs, err)
	}
	return errs
}

func TestDoReturnsWhenTheFlushThatHasItsItemHasEnded(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Second)
		require.NoError(t, b.Do(ctx, 1))
		assert.Equal(t, []int{1}, s.delivered())
		assert.Equal(t, time.Second, time.Since(s.begin))
		return nil
	}, batch.Items(100), batch.Age(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0}, s.at, "at once")
}

func TestItemsOfDoGatherWhileAFlushIsUnderWay(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Second)
		assert.Equal(t, make([]error, 5), told(ctx, do(ctx, b, 1, 2, 3, 4, 5)))
		assert.Equal(t, 2*time.Second, time.Since(s.begin))
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {2, 3, 4, 5}}, s.calls())
}

// A log is written with Add and committed with Do: one flush has both, in order.
func TestItemsOfAddThatWaitAreFlushedBeforeThatOfDo(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, 1, 2)
		require.NoError(t, b.Do(ctx, 3))
		add(t, ctx, b, 4)
		return nil
	}, batch.Items(100))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1, 2, 3}, {4}}, s.calls())
}

// Flush waits for items that have no caller of their own.
func TestFlushDoesNotWaitForItemsOfDo(t *testing.T) {
	_, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Hour)
		calls := do(ctx, b, 1, 2)
		require.NoError(t, b.Flush(ctx))
		assert.Zero(t, time.Since(s.begin))
		assert.Equal(t, make([]error, 2), told(ctx, calls))
		return nil
	})
	require.NoError(t, err)
}

func TestAnItemOfDoIsWithdrawnWhenItsCtxIsDoneBeforeAFlushHasIt(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Minute)
		first := do(ctx, b, 1)
		short, cancel := context.WithCancelCause(ctx)
		second := async.Start(context.WithoutCancel(ctx), func(context.Context) error { return b.Do(short, 2) })
		third := do(ctx, b, 3)
		cancel(errStop)
		_, err := second.Join(ctx)
		assert.True(t, err == errStop, "the bare cause: %v", err)
		assert.Zero(t, time.Since(s.begin), "at once")
		assert.True(t, b.Do(short, 4) == errStop, "it was done before the call")
		assert.Equal(t, make([]error, 2), append(told(ctx, first), told(ctx, third)...))
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {3}}, s.calls())
}

func TestDoWhoseCtxIsDoneWhileAFlushHasItsItemSaysThatItWasUnderWay(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Minute)
		short, cancel := context.WithTimeoutCause(ctx, time.Second, errStop)
		defer cancel()
		err := b.Do(short, 1)
		assert.ErrorIs(t, err, batch.ErrUnderWay)
		assert.ErrorIs(t, err, errStop)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(s.begin), "nobody waits for the flush")
		s.slow(0)
		require.NoError(t, b.Do(ctx, 2))
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, s.delivered())
}

// The flush has ended before Do looks what has become of its item.
func TestAnAnswerThatIsThereWhenTheCtxIsDoneCounts(t *testing.T) {
	for name, failed := range map[string]error{"delivered": nil, "refused": errDisk} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, cancel := context.WithCancel(t.Context())
				answer := make(chan struct{})
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					b := batch.New(ctx, func(context.Context, []int) error {
						<-answer
						return failed
					})
					asked := false
					call := async.Start(ctx, func(context.Context) error {
						return b.Do(doneCtx{done, func() {
							if !asked {
								asked = true
								close(answer)
								synctest.Wait()
							}
						}}, 1)
					})
					synctest.Wait()
					cancel()
					_, err := call.Join(ctx)
					assert.True(t, asked)
					assert.Equal(t, failed, err)
					return nil
				}))
			})
		})
	}
}

func TestDoInsideFlushIsToldThatItWouldWaitForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			var b *batch.Batch[int]
			b = batch.New(ctx, func(ctx context.Context, _ []int) error {
				async.Go(ctx, func(ctx context.Context) error {
					assert.ErrorIs(t, b.Do(ctx, 3), async.ErrAwaitCycle)
					return nil
				})
				return b.Do(ctx, 2)
			})
			assert.ErrorIs(t, b.Do(ctx, 1), async.ErrAwaitCycle)
			return nil
		}))
	})
}

// A flush needs a slot, too: the task that waits lends its own.
func TestDoLendsItsSlotOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush)
			for i := range 5 {
				async.Go(ctx, func(ctx context.Context) error { return b.Do(ctx, i+1) })
			}
			return nil
		}, async.Limit(1)))
		assert.ElementsMatch(t, upTo(5), s.delivered())
	})
}

func TestDoWaitsForRoomInTurnWithAdd(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Second)
		calls := do(ctx, b, 1, 2, 3)
		async.Go(ctx, func(ctx context.Context) error { return b.Add(ctx, 4) })
		synctest.Wait()
		calls = append(calls, do(ctx, b, 5)...)
		assert.Equal(t, make([]error, 4), told(ctx, calls))
		return nil
	}, batch.Capacity(2))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {2, 3}, {4, 5}}, s.calls(), "at most two are held")
}

func TestAddWaitsForTheRoomOfAnItemOfDoThatIsBeingFlushed(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Second)
		calls := do(ctx, b, 1)
		add(t, ctx, b, 2)
		assert.Equal(t, time.Second, time.Since(s.begin))
		assert.Equal(t, []error{nil}, told(ctx, calls))
		return nil
	}, batch.Capacity(1))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {2}}, s.calls())
}

func TestAnItemOfDoThatWaitsForRoomIsWithdrawn(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Minute)
		calls := do(ctx, b, 1)
		short, cancel := context.WithTimeoutCause(ctx, time.Second, errStop)
		defer cancel()
		assert.True(t, b.Do(short, 2) == errStop)
		calls = append(calls, do(ctx, b, 3)...)
		assert.Equal(t, make([]error, 2), told(ctx, calls))
		return nil
	}, batch.Capacity(1))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {3}}, s.calls())
}

// The room of an item that is withdrawn goes to the call that has waited longest.
func TestTheRoomOfAWithdrawnItemIsTakenAtOnce(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Minute)
		calls := do(ctx, b, 1)
		short, cancel := context.WithCancel(ctx)
		async.Go(ctx, func(context.Context) error { _ = b.Do(short, 2); return nil })
		synctest.Wait()
		added := async.Start(ctx, func(ctx context.Context) error { return b.Add(ctx, 3) })
		synctest.Wait()
		cancel()
		assert.Equal(t, []error{nil}, told(ctx, []*async.Future[struct{}]{added}))
		assert.Zero(t, time.Since(s.begin))
		assert.Equal(t, []error{nil}, told(ctx, calls))
		s.slow(0)
		return nil
	}, batch.Capacity(2))
	require.NoError(t, err)
	assert.Equal(t, []int{1, 3}, s.delivered())
}

func TestManyCallsOfDoAreEachFlushedOnceAndInOrder(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Millisecond)
		for c := range 8 {
			async.Go(ctx, func(ctx context.Context) error {
				for i := range 50 {
					if err := b.Do(ctx, 100*c+i); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	require.NoError(t, err)
	next := map[int]int{}
	for _, item := range s.delivered() {
		require.Equal(t, next[item/100], item%100)
		next[item/100]++
	}
	assert.Len(t, s.delivered(), 400)
}

func TestNewAnsweringAnswersEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.NewAnswering(ctx, func(ctx context.Context, items []int) []error {
				answers := make([]error, len(items))
				for i, item := range items {
					if item%2 == 1 {
						answers[i] = fmt.Errorf("%d is odd", item)
					}
				}
				return answers
			})
			calls := do(ctx, b, 1, 2, 3, 4)
			errs := told(ctx, calls)
			assert.EqualError(t, errs[0], "1 is odd")
			assert.NoError(t, errs[1])
			assert.EqualError(t, errs[2], "3 is odd")
			assert.NoError(t, errs[3])
			return nil
		}))
	})
}

// Neither more nor fewer answers say what became of an item. None is not "all well".
func TestAFlushThatDoesNotAnswerEachItemIsAnErrorForAll(t *testing.T) {
	for name, answers := range map[string][]error{"none": nil, "fewer": {nil}, "more": {nil, nil, nil}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					begin := make(chan struct{})
					b := batch.NewAnswering(ctx, func(_ context.Context, items []int) []error {
						if items[0] == 0 {
							<-begin
							return []error{nil}
						}
						return answers
					})
					calls := do(ctx, b, 0, 1, 2)
					close(begin)
					for i, err := range told(ctx, calls) {
						if i > 0 {
							assert.ErrorContains(t, err, fmt.Sprintf("batch: flush has returned %d answers to 2 items", len(answers)))
						}
					}
					return nil
				}))
			})
		})
	}
}

// An item of Add has nobody to be answered: it is the scope's, and comes again.
func TestAnItemOfAddThatWasAnsweredWithAnErrorFailsTheScopeAndComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushes [][]int
		errOdd := errors.New("odd")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.NewAnswering(ctx, func(_ context.Context, items []int) []error {
				flushes = append(flushes, items)
				answers := make([]error, len(items))
				for i, item := range items {
					if item%2 == 1 && len(flushes) == 1 {
						answers[i] = errOdd
					}
				}
				return answers
			})
			add(t, ctx, b, 1, 2, 3)
			assert.NoError(t, b.Do(ctx, 4))
			add(t, ctx, b, 6)
			return nil
		})
		require.Equal(t, errOdd, err)
		assert.Equal(t, [][]int{{1, 2, 3, 4}, {1, 3, 6}}, flushes)
	})
}

// The scope carries on: Flush goes on counting right.
func TestFlushAfterAnAnswerThatRefusedAnItemOfAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := true
		var got []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.NewAnswering(ctx, func(_ context.Context, items []int) []error {
				answers := make([]error, len(items))
				for i, item := range items {
					if refuse && item == 2 {
						answers[i] = errDisk
					} else {
						got = append(got, item)
					}
				}
				refuse = false
				return answers
			}, batch.Size(100, func(int) int { return 10 }))
			add(t, ctx, b, 1, 2, 3)
			assert.Equal(t, errDisk, b.Flush(ctx))
			assert.Equal(t, []int{1, 3}, got)
			assert.NoError(t, b.Flush(ctx))
			assert.Equal(t, []int{1, 3, 2}, got)
			assert.NoError(t, b.Flush(ctx))
			return nil
		}, async.OnFailure(func(error) error { return nil })))
	})
}
