package async_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// What cancels a queued task is its own ctx and nothing else.

func TestAQueuedTaskUnderWithoutCancelRunsAlthoughItsScopeWasCancelled(t *testing.T) {
	stop := errors.New("stop")
	for name, on := range map[string][]async.ScopeOption{
		"alone":          {async.Limit(1)},
		"on an executor": {async.Limit(1), async.On(pool(func(task func()) error { go task(); return nil }))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					for range 3 {
						async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
							require.NoError(t, ctx.Err())
							ran++
							return async.Sleep(ctx, time.Second)
						})
						async.Go(ctx, func(context.Context) error { t.Error("ran"); return nil })
					}
					// The scope is cancelled before a slot is free.
					time.AfterFunc(time.Minute, func() { close(gate) })
					return stop
				}, on...)
				require.ErrorIs(t, err, stop)
				require.Equal(t, 3, ran)
			})
		})
	}
}

func TestAQueuedTaskUnderAnEndedTimeoutIsSettledThoughItsScopeGoesOn(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		f := async.Execute(brief, func(context.Context) (int, error) { t.Error("ran"); return 0, nil })
		start := time.Now()
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, time.Second, start)
		return nil
	})
}

// TestASlotIsNotGivenToATaskWhoseContextIsDone: the context is done before the
// slot is free, though nobody may have come to take the task out of the queue.
func TestASlotIsNotGivenToATaskWhoseContextIsDone(t *testing.T) {
	for name, derive := range map[string]func(ctx context.Context) (context.Context, func()){
		"derived": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		},
		"beside": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3_000 / raceFactor {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					under, cancel := derive(ctx)
					f := async.Execute(under, func(context.Context) (int, error) { t.Error("ran"); return 0, nil })
					cancel()
					close(gate)
					_, err := f.Wait(ctx)
					require.ErrorIs(t, err, context.Canceled)
					return nil
				}, async.Limit(1))
				require.NoError(t, err)
			}
		})
	}
}
