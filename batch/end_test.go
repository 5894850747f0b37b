package batch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
)

func TestTheLastFlushComesAfterAllTasksAndItsCtxIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks atomic.Int32
		called := false
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, items []int) error {
				called = true
				assert.Zero(t, tasks.Load())
				assert.NoError(t, ctx.Err())
				deadline, ok := ctx.Deadline()
				assert.True(t, ok)
				assert.Equal(t, 3*time.Second, time.Until(deadline))
				assert.Equal(t, upTo(8), items)
				return nil
			}, batch.Age(time.Hour))
			for i := range 8 {
				tasks.Add(1)
				async.Go(ctx, func(ctx context.Context) error {
					defer tasks.Add(-1)
					<-ctx.Done()
					time.Sleep(time.Duration(i+1) * time.Millisecond)
					add(t, ctx, b, i+1)
					return nil
				})
			}
			synctest.Wait()
			return errStop
		}, async.HookTimeout(3*time.Second))
		assert.Equal(t, errStop, err)
		assert.True(t, called)
	})
}

func TestAFlushUnderWayIsNotCutShortByAScopeThatEndsWell(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		s.slow(time.Hour)
		add(t, ctx, b, 1)
		synctest.Wait()
		s.slow(time.Second)
		add(t, ctx, b, 2)
		return nil
	}, batch.Items(1))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1}, {2}}, s.calls())
}

// One that does not look at its ctx ends well, and there is more to do by then.
func TestInACancelledScopeNoFlushIsStartedButTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, items []int) error {
				calls++
				assert.NoError(t, ctx.Err())
				time.Sleep(time.Second)
				return nil
			}, batch.Items(1))
			add(t, ctx, b, 1)
			synctest.Wait()
			add(t, ctx, b, 2)
			async.Go(ctx, func(ctx context.Context) error {
				time.Sleep(time.Minute)
				add(t, ctx, b, 3)
				return nil
			})
			return errStop
		})
		assert.Equal(t, errStop, err)
		assert.Equal(t, 2, calls)
	})
}

// The scope does not wait for the age to come.
func TestTheEndDoesNotWaitForTheAge(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], _ *sink) error {
		add(t, ctx, b, 1)
		return nil
	}, batch.Age(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{0}, s.at)
}

func TestALastFlushThatHangsIsEndedAndItsItemsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, _ []string) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
			return b.Add(ctx, "a", "b")
		}, async.HookTimeout(3*time.Second))
		assert.Equal(t, 3*time.Second, time.Since(begin))
		lost := new(batch.LostError[string])
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, []string{"a", "b"}, lost.Items)
		assert.ErrorIs(t, lost, context.DeadlineExceeded)
	})
}

// One that does not even look at its ctx is what DetachAfter is for.
func TestALastFlushThatIgnoresItsCtxIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, check := asynctest.Root(t.Context())
		err := async.Scope(ctx, func(ctx context.Context) error {
			b := batch.New(ctx, func(context.Context, []int) error {
				time.Sleep(time.Minute)
				return errDisk
			})
			add(t, ctx, b, 1)
			return errStop
		}, async.DetachAfter(time.Second))
		left := new(async.StragglerError)
		require.ErrorAs(t, err, &left)
		require.NotEmpty(t, left.Left)
		assert.Contains(t, left.Left[0].Stack, "TestALastFlushThatIgnoresItsCtxIsLetGo")

		time.Sleep(2 * time.Minute)
		lost := new(batch.LostError[int])
		require.ErrorAs(t, check(), &lost, "the root is told")
		assert.Equal(t, []int{1}, lost.Items)
	})
}

// Neither tasks that go on adding until they are told to stop nor goroutines that
// are no tasks keep the scope from ending.
func TestProducersThatNeverStopDoNotKeepTheScopeFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		accepted, refused := make(chan int, 1), make(chan error, 1)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(10))
			go func() {
				for i := 1; ; i++ {
					if err := b.Add(context.Background(), i); err != nil {
						accepted <- i - 1
						refused <- err
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			return async.Sleep(ctx, 10*time.Second)
		})
		require.NoError(t, err)
		assert.Equal(t, upTo(<-accepted), s.delivered())
		err = <-refused
		assert.ErrorIs(t, err, async.ErrScopeEnded)
		assert.ErrorContains(t, err, "batch: closed")
	})
}

// On the real clock and as fast as they can. Flushes take no time here, so the scope
// has to find a moment in which none is under way.
func TestProducersAsFastAsTheyCanDoNotKeepTheScopeFromEnding(t *testing.T) {
	for _, opts := range [][]batch.Option{{batch.Items(1)}, {batch.Items(1), batch.Capacity(10)}} {
		var wg sync.WaitGroup
		delivered, accepted := 0, atomic.Int64{}
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			b := batch.New(ctx, func(_ context.Context, items []int) error {
				delivered += len(items)
				return nil
			}, opts...)
			for range 3 {
				wg.Go(func() {
					for b.Add(context.Background(), 1) == nil {
						accepted.Add(1)
					}
				})
			}
			for accepted.Load() < 1000 {
				if err := b.Flush(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		wg.Wait()
		require.NoError(t, err)
		assert.Equal(t, accepted.Load(), int64(delivered))
	}
}

func TestAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		var b, lossy *batch.Batch[int]
		var inner context.Context
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b = batch.New(ctx, s.flush, batch.Items(1))
			lossy = batch.New(ctx, func(context.Context, []int) error { return errDisk })
			inner = ctx
			add(t, ctx, b, 1)
			add(t, ctx, lossy, 1)
			return nil
		})
		require.ErrorIs(t, err, errDisk)
		ctx := t.Context()
		assert.ErrorIs(t, b.Add(ctx, 2), async.ErrScopeEnded)
		assert.NoError(t, b.Flush(ctx), "everything was delivered")
		assert.ErrorIs(t, lossy.Flush(ctx), async.ErrScopeEnded)

		late := batch.New(inner, s.flush)
		assert.ErrorIs(t, late.Add(ctx, 3), async.ErrScopeEnded)
		assert.NoError(t, late.Flush(ctx))
		time.Sleep(time.Hour)
		assert.Equal(t, []int{1}, s.delivered())
	})
}

// A Flush that is not of the scope is answered by the last flush.
func TestFlushThatWaitsAtTheEndIsAnsweredByTheLastOne(t *testing.T) {
	for name, failing := range map[string]bool{"delivered": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSink(t)
				s.slow(time.Second)
				answer := make(chan error, 1)
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					b := batch.New(ctx, s.flush)
					async.OnExit(ctx, func(context.Context, error) error {
						add(t, ctx, b, 1)
						return nil
					})
					go func() {
						time.Sleep(1500 * time.Millisecond)
						answer <- b.Flush(context.Background())
					}()
					async.OnExit(ctx, func(context.Context, error) error {
						time.Sleep(time.Second)
						if failing {
							s.fails = 1
						}
						return nil
					})
					return nil
				})
				if failing {
					require.ErrorIs(t, err, errDisk)
					assert.Equal(t, errDisk, <-answer)
				} else {
					require.NoError(t, err)
					assert.NoError(t, <-answer)
				}
			})
		})
	}
}

// Hooks run last in, first out: what was made after the batch may still add.
func TestTwoBatchesOfAScopeEndInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			rows := batch.New(ctx, s.flush, batch.Items(2))
			words := batch.New(ctx, func(ctx context.Context, words []string) error {
				for _, w := range words {
					if err := rows.Add(ctx, len(w)); err != nil {
						return err
					}
				}
				return nil
			}, batch.Items(3))
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return words.Add(ctx, "hook") })
			return words.Add(ctx, "a")
		})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 4}, s.delivered())
	})
}

// A flush that a foreign goroutine has set going while the scope was ending is
// joined before the last one.
func TestAFlushThatBeginsAtTheEndIsJoinedBeforeTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.slow(time.Second)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(2))
			async.OnExit(ctx, func(context.Context, error) error {
				add(t, context.Background(), b, 1, 2)
				synctest.Wait()
				add(t, context.Background(), b, 3)
				return nil
			})
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, [][]int{{1, 2}, {3}}, s.calls())
	})
}
