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

	"github.com/stretchr/testify/assert"
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

func TestTheAbortHookOfAPromiseHasItsHookTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			var left time.Duration
			f, _ := async.NewPromise[int](ctx, async.HookTimeout(50*time.Millisecond),
				async.OnAbort(func(ctx context.Context, _ error) error {
					deadline, _ := ctx.Deadline()
					left = time.Until(deadline)
					return nil
				}))
			f.Cancel(nil)
			synctest.Wait()
			assert.Equal(t, 50*time.Millisecond, left)
			return nil
		})
	})
}

func TestAPromiseDiscardsWhatNobodyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped atomic.Int32
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(func(v int) { dropped.Add(int32(v)) }))
			require.True(t, p.Resolve(1)) // never awaited
			f.Cancel(nil)
			require.EqualValues(t, 1, dropped.Load())
			g, q := async.NewPromise[int](ctx, async.OnDiscard(func(v int) { dropped.Add(int32(v)) }))
			require.True(t, g.Cancel(nil))
			require.False(t, q.Resolve(10))
			require.EqualValues(t, 11, dropped.Load())
			async.NewPromise[int](ctx, async.OnDiscard(func(v int) { t.Error("it has no value") }))
			_, r := async.NewPromise[int](ctx, async.OnDiscard(func(v int) { dropped.Add(int32(v)) }))
			r.Resolve(100)
			return nil
		}))
		require.EqualValues(t, 111, dropped.Load())
	})
}
