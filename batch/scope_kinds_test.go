package batch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
)

// The scope that a batch belongs to, and what else that has been told.

func TestABatchOfAGroupEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		g := async.NewGroup(t.Context())
		b := batch.New(g.Context(), s.flush, batch.Age(time.Second))
		for i := range 10 {
			require.NoError(t, g.Go(func(ctx context.Context) error { return b.Add(ctx, i) }))
		}
		time.Sleep(time.Minute)
		assert.Len(t, s.delivered(), 10)

		add(t, t.Context(), b, 11)
		require.NoError(t, g.Stop(t.Context(), errStop))
		assert.Len(t, s.delivered(), 11)
		assert.ErrorIs(t, b.Add(t.Context(), 12), async.ErrScopeEnded)
	})
}

// An empty group holds nobody up. The items of its batch are flushed all the same.
func TestABatchOfAGroupThatNobodyStopsEndsWithTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(async.NewGroup(ctx).Context(), s.flush)
			return b.Add(ctx, 1)
		})
		require.NoError(t, err)
		assert.Equal(t, []int{1}, s.delivered())
	})
}

func TestAFailingFlushFailsTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		s.fails = 1
		g := async.NewGroup(t.Context())
		add(t, t.Context(), batch.New(g.Context(), s.flush, batch.Items(1)), 1)
		synctest.Wait()
		assert.Equal(t, errDisk, context.Cause(g.Context()))
		assert.Equal(t, errDisk, g.Stop(t.Context(), errStop))
		assert.Equal(t, []int{1}, s.delivered())
	})
}

func TestABatchOfATaskEndsWithTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			_, err := async.Start(ctx, func(ctx context.Context) error {
				return batch.New(ctx, s.flush).Add(ctx, 1)
			}).Wait(ctx)
			assert.Equal(t, []int{1}, s.delivered())
			return err
		})
		require.NoError(t, err)
	})
}

// Once the ctx of New is done no flush is started but the last, although the scope
// goes on. Nobody waits for what does not come.
func TestABatchWithACtxThatEndsBeforeItsScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			b := batch.New(short, s.flush, batch.Items(1), batch.Age(time.Minute), batch.Capacity(3))
			add(t, ctx, b, 1)
			require.NoError(t, async.Sleep(ctx, time.Hour))
			add(t, ctx, b, 2, 3, 4)
			require.NoError(t, async.Sleep(ctx, time.Hour))
			assert.Equal(t, []int{1}, s.delivered())
			assert.ErrorIs(t, b.Flush(ctx), context.DeadlineExceeded)
			assert.ErrorIs(t, b.Add(ctx, 5), context.DeadlineExceeded)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3, 4}, s.delivered())
	})
}

// Under WithoutCancel a batch goes on while its scope is being cancelled, until
// the end of that.
func TestABatchUnderWithoutCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(context.WithoutCancel(ctx), s.flush, batch.Items(2))
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				add(t, ctx, b, 1, 2, 3)
				return b.Flush(context.WithoutCancel(ctx))
			})
			return errStop
		})
		assert.Equal(t, errStop, err)
		assert.Equal(t, []int{1, 2, 3}, s.delivered())
	})
}

// A full pool does not hold up those who add.
func TestAddDoesNotBlockInAScopeOnAFullPool(t *testing.T) {
	full := make(chan struct{}) // nobody receives from it
	for name, ex := range map[string]async.Executor{
		"blocks":  executor(func(func()) error { <-full; return nil }),
		"refuses": executor(func(func()) error { return errors.New("full") }),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSink(t)
			err := async.Scope(t.Context(), func(ctx context.Context) error {
				b := batch.New(ctx, s.flush, batch.Items(1))
				add(t, ctx, b, 1, 2, 3)
				return b.Flush(ctx)
			}, async.On(ex))
			require.NoError(t, err)
			assert.Equal(t, []int{1, 2, 3}, s.delivered())
		})
	}
}

type executor func(func()) error

func (ex executor) Execute(task func()) error { return ex(task) }

// Under a Limit a flush waits for a slot; the last does not.
func TestAFlushNeedsASlotOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(1))
			async.Go(ctx, func(ctx context.Context) error {
				add(t, ctx, b, 1)
				time.Sleep(time.Minute) // keeps its slot
				return nil
			})
			time.Sleep(time.Second)
			assert.Empty(t, s.calls())
			return nil
		}, async.Limit(1))
		require.NoError(t, err)
		assert.Equal(t, []time.Duration{time.Minute}, s.at)
	})
}

// One that was skipped, because its scope was cancelled while it queued, leaves
// everything to the last.
func TestAFlushThatQueuesWhileItsScopeIsCancelledIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, s.flush, batch.Items(1), batch.Capacity(2))
			async.Go(ctx, func(ctx context.Context) error {
				add(t, ctx, b, 1)
				time.Sleep(time.Minute)
				add(t, ctx, b, 2)
				assert.ErrorIs(t, b.Flush(context.WithoutCancel(ctx)), errStop)
				assert.ErrorIs(t, b.Add(context.WithoutCancel(ctx), 3), errStop)
				return nil
			})
			time.Sleep(time.Second)
			return errStop
		}, async.Limit(1))
		require.ErrorIs(t, err, errStop)
		assert.Equal(t, [][]int{{1, 2}}, s.calls())
	})
}

func TestOnPanicMayHaveTheBatchTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		first := true
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, items []int) error {
				if first {
					first = false
					panic("boom")
				}
				return s.flush(ctx, items)
			}, batch.Items(2))
			add(t, ctx, b, 1, 2, 3)
			require.NoError(t, async.Sleep(ctx, 2*time.Second))
			assert.Equal(t, [][]int{{1, 2, 3}}, s.calls())
			return nil
		}, async.OnPanic(func(*async.PanicError) error { return nil }))
		require.NoError(t, err)
	})
}

// A flush is on record where everything is.
func TestAFlushThatHangsIsNamedByOnStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left []string
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := batch.New(ctx, func(ctx context.Context, _ []int) error {
				return async.Sleep(ctx, time.Hour)
			}, batch.Items(1))
			return b.Add(ctx, 1)
		}, async.OnStall(time.Minute, func(e *async.StragglerError) {
			for _, s := range e.Left {
				left = append(left, s.Task)
			}
		}))
		require.NoError(t, err)
		require.NotEmpty(t, left)
		assert.Contains(t, left[0], "batch of batch_test.TestAFlushThatHangsIsNamedByOnStall")
	})
}

func TestShutdownEndsABatchAtTheRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink(t)
		root, check := asynctest.Root(t.Context())
		b := batch.New(async.NewGroup(root).Context(), s.flush, batch.Age(time.Hour))
		add(t, root, b, 1)
		require.NoError(t, check())
		assert.Equal(t, []int{1}, s.delivered())
		assert.ErrorIs(t, b.Add(context.Background(), 2), async.ErrScopeEnded)
	})
}
