package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// strangeContext is a context of a type that package context does not know.
type strangeContext struct{ context.Context }

// TestAContextThatOnlyAddsValuesIsDoneLikeItsOwners is about contexts whose
// cancellation need not be looked at beside the owner's.
func TestAContextThatOnlyAddsValuesIsDoneLikeItsOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for _, ctx := range []context.Context{ctx, context.WithValue(ctx, levelKey{}, "kept"), strangeContext{ctx}} {
				async.Go(ctx, func(ctx context.Context) error {
					got, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, deadline, got)
					<-ctx.Done()
					require.Equal(t, context.DeadlineExceeded, ctx.Err())
					require.Equal(t, context.DeadlineExceeded, context.Cause(ctx))
					return nil
				})
			}
			return nil
		})
		boom := errors.New("boom")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(context.WithValue(ctx, levelKey{}, "kept"), func(ctx context.Context) error {
				require.Equal(t, "kept", ctx.Value(levelKey{}))
				<-ctx.Done()
				require.Equal(t, context.Canceled, ctx.Err())
				require.Equal(t, boom, context.Cause(ctx))
				return nil
			})
			return boom
		})
		require.ErrorIs(t, err, boom)
	})
}

type ownChannel struct {
	context.Context
	done chan struct{}
}

func (s *ownChannel) Done() <-chan struct{} { return s.done }

func TestAStrangersContextIsWatchedOnce(t *testing.T) {
	const n = 1000
	before := runtime.NumGoroutine()
	err := async.Scope(&ownChannel{context.Background(), make(chan struct{})}, func(ctx context.Context) error {
		var ready sync.WaitGroup
		ready.Add(n)
		stop := make(chan struct{})
		for range n {
			async.Go(ctx, func(ctx context.Context) error {
				done := ctx.Done()
				ready.Done()
				select {
				case <-done:
				case <-stop:
				}
				return nil
			})
		}
		ready.Wait()
		require.LessOrEqual(t, goroutines(before+n+10)-before-n, 10)
		close(stop)
		return nil
	})
	require.NoError(t, err)
}

// countedContext counts how often its Err is asked, which asks its parent's, as
// its Done, which is its own, does not.
type countedContext struct {
	context.Context
	done  chan struct{}
	asked *atomic.Int64
}

func (c countedContext) Done() <-chan struct{} { return c.done }

func (c countedContext) Err() error { c.asked.Add(1); return c.Context.Err() }

func TestContextsOfOnesOwnAreNotAskedMoreOftenThanTheDepth(t *testing.T) {
	const depth = 16
	var asked atomic.Int64
	var down func(ctx context.Context, n int) error
	down = func(ctx context.Context, n int) error {
		if n == 0 {
			asked.Store(0)
			return ctx.Err()
		}
		return async.Scope(countedContext{ctx, make(chan struct{}), &asked}, func(ctx context.Context) error { return down(ctx, n-1) })
	}
	require.NoError(t, down(asynctest.Context(t), depth))
	require.LessOrEqual(t, asked.Load(), int64(2*depth))
}
