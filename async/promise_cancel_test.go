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

// TestAPromiseCancelledBeforeItIsResolvedFiresOnce: its hook tells whoever is
// to resolve it that nobody wants it any more.
func TestAPromiseCancelledBeforeItIsResolvedFiresOnce(t *testing.T) {
	for name, test := range map[string]struct {
		cancel func(t *testing.T, ctx context.Context, f *async.Future[int], stop context.CancelCauseFunc)
		cause  error
	}{
		"Cancel": {func(t *testing.T, _ context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			require.True(t, f.Cancel(errCancelWhy))
			f.Cancel(errCancelBoom)
		}, errCancelWhy},
		"an Await": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			start := time.Now()
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			tookAbout(t, time.Second, start)
			_, err = f.Await(ctx, -1)
			require.Error(t, err)
		}, context.DeadlineExceeded},
		"a derived context": {func(_ *testing.T, _ context.Context, _ *async.Future[int], stop context.CancelCauseFunc) {
			stop(errCancelWhy)
		}, errCancelWhy},
		"its timeout": {func(*testing.T, context.Context, *async.Future[int], context.CancelCauseFunc) {
			time.Sleep(time.Minute)
		}, context.DeadlineExceeded},
	} {
		for _, resolves := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", resolved in the hook"}[resolves], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var hooks atomic.Int32
					require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						derived, stop := context.WithCancelCause(ctx)
						defer stop(nil)
						promised := make(chan *async.Promise[int], 1)
						opts := []async.TaskOption{async.OnAbort(func(_ context.Context, cause error) error {
							hooks.Add(1)
							require.ErrorIs(t, cause, test.cause)
							if resolves {
								time.Sleep(time.Nanosecond) // not before the Await has returned
								(<-promised).Resolve(7)
							}
							return nil
						})}
						if name == "its timeout" {
							opts = append(opts, async.Timeout(time.Minute))
						}
						f, q := async.NewPromise[int](derived, opts...)
						promised <- q
						test.cancel(t, ctx, f, stop)
						synctest.Wait()
						require.EqualValues(t, 1, hooks.Load())
						if resolves {
							v, err := f.Wait(ctx)
							require.NoError(t, err)
							require.Equal(t, 7, v)
						} else {
							require.False(t, q.Resolve(8), "it has settled when the hook has returned")
							_, err := f.Wait(ctx)
							require.ErrorIs(t, err, test.cause)
						}
						f.Cancel(errCancelBoom)
						stop(errCancelBoom)
						synctest.Wait()
						return nil
					}))
					require.EqualValues(t, 1, hooks.Load())
				})
			})
		}
	}
}

func TestAPromiseResolvedBeforeItIsCancelledDoesNotFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			derived, stop := context.WithCancel(ctx)
			f, p := async.NewPromise[int](derived, async.Timeout(time.Minute), async.OnAbort(func(_ context.Context, cause error) error {
				t.Errorf("fired: %v", cause)
				return nil
			}))
			require.True(t, p.Resolve(7))
			require.False(t, f.Cancel(errCancelWhy))
			stop()
			time.Sleep(time.Hour)
			v, err := f.Await(ctx, 0)
			require.Equal(t, 7, v)
			return err
		}))
	})
}

func TestACancelledScopeFiresItsPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hooks atomic.Int32
		var f *async.Future[int]
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f, _ = async.NewPromise[int](ctx, async.OnAbort(func(_ context.Context, cause error) error {
				hooks.Add(1)
				require.ErrorIs(t, cause, errCancelBoom)
				return nil
			}))
			return errCancelBoom
		})
		require.ErrorIs(t, err, errCancelBoom)
		require.EqualValues(t, 1, hooks.Load(), "and the scope has joined the hook")
		_, err, ok := f.Result()
		require.True(t, ok)
		require.ErrorIs(t, err, errCancelBoom)
	})
}

func TestAPromiseThatIsCancelledSettlesAtOnceWithoutAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			derived, stop := context.WithCancelCause(ctx)
			f, p := async.NewPromise[int](derived)
			stop(errCancelWhy)
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, errCancelWhy)
			require.ErrorIs(t, err, context.Canceled)
			require.False(t, p.Resolve(7))

			late, q := async.NewPromise[int](derived)
			_, err, ok := late.Result()
			require.True(t, ok, "made in a context that is done")
			require.ErrorIs(t, err, errCancelWhy)
			require.False(t, q.Reject(errCancelBoom))
			return nil
		}))
	})
}

func TestResolveRacesCancel(t *testing.T) {
	root := asynctest.Context(t)
	for range 500 {
		var hooks atomic.Int32
		require.NoError(t, async.Scope(root, func(ctx context.Context) error {
			f, p := async.NewPromise[int](ctx, async.OnAbort(func(context.Context, error) error { hooks.Add(1); return nil }))
			var all sync.WaitGroup
			var resolved bool
			all.Go(func() { resolved = p.Resolve(7) })
			all.Go(func() { f.Cancel(errCancelWhy) })
			all.Go(func() {
				if v, err := f.Await(ctx, 1); err == nil {
					require.Equal(t, 7, v)
				}
			})
			all.Wait()
			v, err := f.Await(ctx, 0)
			if resolved {
				require.NoError(t, err)
				require.Equal(t, 7, v)
			} else {
				require.Error(t, err)
			}
			return nil
		}))
		require.LessOrEqual(t, hooks.Load(), int32(1))
	}
}
