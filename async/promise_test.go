package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var errPromise = errors.New("rejected")

func TestAResolvedPromiseIsItsFuturesValue(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f, p := async.NewPromise[string](ctx)
		require.NotEqual(t, async.StateDone, f.State())
		start := time.Now()
		time.AfterFunc(time.Second, func() { require.True(t, p.Resolve("value")) })
		v, err := f.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, "value", v)
		tookAbout(t, time.Second, start)
		<-f.Done()
		require.Equal(t, async.StateDone, f.State())
		v, err, ok := f.Result()
		require.True(t, ok)
		require.NoError(t, err)
		require.Equal(t, "value", v)
	})
}

func TestARejectedPromiseIsItsFuturesError(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f, p := async.NewPromise[string](ctx)
		require.True(t, p.Reject(errPromise))
		for range 3 {
			_, err := f.Await(ctx, 0)
			require.Equal(t, errPromise, err)
		}
	})
}

func TestTheFirstOfResolveAndRejectWins(t *testing.T) {
	for name, test := range map[string]struct {
		first, second func(*async.Promise[int]) bool
		v             int
		err           error
	}{
		"resolve, resolve": {func(p *async.Promise[int]) bool { return p.Resolve(1) }, func(p *async.Promise[int]) bool { return p.Resolve(2) }, 1, nil},
		"resolve, reject":  {func(p *async.Promise[int]) bool { return p.Resolve(1) }, func(p *async.Promise[int]) bool { return p.Reject(errors.New("2")) }, 1, nil},
		"reject, resolve":  {func(p *async.Promise[int]) bool { return p.Reject(errPromise) }, func(p *async.Promise[int]) bool { return p.Resolve(2) }, 0, errPromise},
		"reject, reject":   {func(p *async.Promise[int]) bool { return p.Reject(errPromise) }, func(p *async.Promise[int]) bool { return p.Reject(errors.New("2")) }, 0, errPromise},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				f, p := async.NewPromise[int](ctx)
				require.True(t, test.first(p))
				require.False(t, test.second(p))
				v, err := f.Wait(ctx)
				require.Equal(t, test.v, v)
				require.Equal(t, test.err, err)
			})
		})
	}
}

func TestOfManyWhoResolveOneWins(t *testing.T) {
	root := asynctest.Context(t)
	for range 500 {
		f, p := async.NewPromise[int](root)
		var won atomic.Int64
		var all sync.WaitGroup
		for i := 1; i <= 4; i++ {
			all.Go(func() {
				if p.Resolve(i) {
					won.Add(int64(i))
				}
			})
		}
		all.Go(func() {
			v, err := f.Wait(root)
			require.NoError(t, err)
			require.NotZero(t, v)
		})
		all.Wait()
		v, err := f.Wait(root)
		require.NoError(t, err)
		require.EqualValues(t, won.Load(), v)
	}
}

func TestANilRejectionPanics(t *testing.T) {
	_, p := async.NewPromise[int](asynctest.Context(t))
	require.NotNil(t, panicFrom(func() { p.Reject(nil) }))
}

func TestARejectedPromiseThatNobodyAwaitedFailsItsScope(t *testing.T) {
	for name, test := range map[string]struct {
		use   func(t *testing.T, ctx context.Context, f *async.Future[int], p *async.Promise[int])
		fails bool
	}{
		"nobody": {func(_ *testing.T, _ context.Context, _ *async.Future[int], p *async.Promise[int]) {
			p.Reject(errPromise)
		}, true},
		"awaited after": {func(t *testing.T, ctx context.Context, f *async.Future[int], p *async.Promise[int]) {
			p.Reject(errPromise)
			_, err := f.Await(ctx, 0)
			require.Equal(t, errPromise, err)
		}, false},
		"awaited meanwhile": {func(t *testing.T, ctx context.Context, f *async.Future[int], p *async.Promise[int]) {
			time.AfterFunc(time.Second, func() { p.Reject(errPromise) })
			_, err := f.Wait(ctx)
			require.Equal(t, errPromise, err)
		}, false},
		"taken as a Result": {func(t *testing.T, _ context.Context, f *async.Future[int], p *async.Promise[int]) {
			p.Reject(errPromise)
			_, err, _ := f.Result()
			require.Equal(t, errPromise, err)
		}, false},
		"after its owner was told a timeout": {func(t *testing.T, ctx context.Context, f *async.Future[int], p *async.Promise[int]) {
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			p.Reject(errPromise)
		}, false},
		"after its owner cancelled it": {func(_ *testing.T, _ context.Context, f *async.Future[int], p *async.Promise[int]) {
			f.Cancel(nil)
			p.Reject(errPromise)
		}, false},
		"by a task that the scope joins": {func(_ *testing.T, ctx context.Context, _ *async.Future[int], p *async.Promise[int]) {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); p.Reject(errPromise); return nil })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					f, p := async.NewPromise[int](ctx)
					test.use(t, ctx, f, p)
					return nil
				})
				if test.fails {
					require.ErrorIs(t, err, errPromise)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

func TestARejectionThatMentionsErrAbandonedFailsTheScope(t *testing.T) {
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		_, p := async.NewPromise[int](ctx)
		p.Reject(fmt.Errorf("upstream: %w", async.ErrAbandoned))
		return nil
	})
	require.ErrorIs(t, err, async.ErrAbandoned)
}

func TestManyWaitForOnePromise(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f, p := async.NewPromise[int](ctx)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			for range 100 {
				async.Go(ctx, func(ctx context.Context) error {
					v, err := f.Wait(ctx)
					require.Equal(t, 7, v)
					return err
				})
			}
			synctest.Wait()
			p.Resolve(7)
			return nil
		}))
	})
}
