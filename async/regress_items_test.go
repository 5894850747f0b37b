package async_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestTheFirstCauseIsSeenByAllBelow(t *testing.T) {
	outer, boom := errors.New("outer"), errors.New("boom")
	for range 200 {
		ctx, cancel := context.WithCancelCause(context.Background())
		var wrong atomic.Int64
		var err error
		_ = async.Scope(ctx, func(ctx context.Context) error {
			err = async.Scope(ctx, func(ctx context.Context) error {
				var ready sync.WaitGroup
				ready.Add(100)
				for i := range 100 {
					async.Go(ctx, func(ctx context.Context) error {
						done := ctx.Done()
						ready.Done()
						<-done
						if i == 0 {
							cancel(outer)
						}
						if context.Cause(ctx) == outer {
							wrong.Add(1)
						}
						return ctx.Err()
					})
				}
				ready.Wait()
				return boom
			})
			return nil
		})
		require.Equal(t, boom, err)
		require.Zero(t, wrong.Load(), "tasks saw another cause than their scope's")
	}
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

func TestPanicsBeyondTheListAreCountedOnce(t *testing.T) {
	err := panicOrError(func() error {
		return async.Scope(context.Background(), func(ctx context.Context) error {
			start := make(chan struct{})
			for i := range 100 {
				async.Go(ctx, func(context.Context) error { <-start; panic(i) })
			}
			close(start)
			return nil
		})
	})
	var list *async.ScopeError
	require.ErrorAs(t, err, &list)
	require.Equal(t, 99, len(list.Errors)+list.Dropped)
}

func TestAnItemsErrorIsNotLostWhenTheRestIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{0, 1}, func(ctx context.Context, i int) (int, error) {
				if i == 0 {
					return 0, errPlanted
				}
				<-ctx.Done()
				return 0, ctx.Err()
			})
			time.Sleep(time.Second)
			return io.ErrNoProgress
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, []error{io.ErrNoProgress, errPlanted}, list.Errors)
	})
}

func TestAnItemWithATimeLimitThatCallsGoexitTellsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			results, err := async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) {
				async.Go(ctx, func(context.Context) error { return errPlanted })
				_ = async.Sleep(ctx, time.Second)
				runtime.Goexit()
				return 0, nil
			}, async.ItemTimeout(time.Hour)).Await(ctx, 0)
			require.NoError(t, err)
			require.ErrorIs(t, results[0].Err, errPlanted)
			require.ErrorIs(t, results[0].Err, async.ErrGoexit)
			return nil
		}))
	})
}
