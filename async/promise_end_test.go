package async_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAPromiseWhoseScopeEndsUnresolvedIsAbandoned: it holds nothing up, and is
// a failure only if somebody was waiting.
func TestAPromiseWhoseScopeEndsUnresolvedIsAbandoned(t *testing.T) {
	for name, test := range map[string]struct {
		wait  func(ctx context.Context, f *async.Future[int]) error // by somebody outside
		fails bool
	}{
		"nobody waits":    {nil, false},
		"somebody waits":  {func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(ctx); return err }, true},
		"somebody awaits": {func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, 0); return err }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root := asynctest.Context(t)
				start := time.Now()
				var f *async.Future[int]
				var p *async.Promise[int]
				told := make(chan error, 1)
				err := async.Scope(root, func(ctx context.Context) error {
					f, p = async.NewPromise[int](ctx)
					if test.wait != nil {
						go func() { told <- test.wait(root, f) }()
					}
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
					return nil
				})
				tookAbout(t, time.Second, start)
				_, ferr, ok := f.Result()
				require.True(t, ok)
				require.ErrorIs(t, ferr, async.ErrAbandoned)
				require.False(t, p.Resolve(1), "too late")
				require.False(t, p.Reject(errPromise), "too late")
				_, ferr = f.Wait(root)
				require.ErrorIs(t, ferr, async.ErrAbandoned)
				if test.fails {
					require.ErrorIs(t, err, async.ErrAbandoned)
					require.ErrorIs(t, <-told, async.ErrAbandoned)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

func TestAPromiseOfATaskIsAbandonedWhenTheTaskSettles(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var f *async.Future[int]
		v, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			f, _ = async.NewPromise[int](ctx)
			return 1, nil
		}).Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 1, v)
		_, err = f.Wait(ctx)
		require.ErrorIs(t, err, async.ErrAbandoned)
	})
}

func TestAPromiseMayBeResolvedByWhatTheScopeJoins(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f, p := async.NewPromise[int](ctx)
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); p.Resolve(7); return nil })
			async.Go(ctx, func(ctx context.Context) error {
				v, err := f.Await(ctx, 0)
				require.Equal(t, 7, v)
				return err
			})
			return nil
		}))
	})
}

func TestPromisesRaceTheEndOfTheirScope(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 1000 {
		var f *async.Future[int]
		var p *async.Promise[int]
		var won atomic.Bool
		var dropped atomic.Int32
		var all sync.WaitGroup
		require.NoError(t, async.Scope(root, func(ctx context.Context) error {
			f, p = async.NewPromise[int](ctx, async.OnDiscard(func(int) { dropped.Add(1) }))
			all.Go(func() { won.Store(p.Resolve(i)) })
			return nil
		}))
		all.Wait()
		v, err := f.Wait(root)
		require.Zero(t, v)
		require.EqualValues(t, 1, dropped.Load(), "nobody was given the value")
		if won.Load() {
			require.ErrorIs(t, err, async.ErrScopeEnded)
		} else {
			require.ErrorIs(t, err, async.ErrAbandoned)
		}
	}
}

func TestAPromiseOnAnEndedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := asynctest.Context(t)
		var stored context.Context
		require.NoError(t, async.Scope(root, func(ctx context.Context) error { stored = ctx; return nil }))
		dropped := 0
		f, p := async.NewPromise[int](stored, async.OnDiscard(func(v int) { dropped += v }))
		_, err := f.Wait(root)
		require.ErrorIs(t, err, async.ErrScopeEnded)
		require.False(t, p.Resolve(7))
		require.False(t, p.Reject(errPromise))
		require.Equal(t, 7, dropped)
	})
}
