package async_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

func TestAnAwaitAllLeavesTheTimeoutOfItsScopeAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var cause, hookCause error
		require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
			f := async.Execute(outer, obedient(0, 0, context.Canceled), async.OnAbort(func(_ context.Context, c error) error { hookCause = c; return nil }))
			_ = async.Scope(outer, func(ctx context.Context) error {
				r := async.AwaitAll(ctx, 0, f)
				cause = context.Cause(ctx)
				require.ErrorIs(t, r[0].Err, cause)
				return nil
			}, async.Timeout(time.Second))
			return nil
		}))
		var expired *async.TimeoutError
		require.ErrorAs(t, cause, &expired)
		require.Equal(t, time.Second, expired.Limit)
		require.Same(t, cause, hookCause)
	})
}

// TestAwaitAllsThatATimeoutEndsTogetherShareNothing is for the race detector.
func TestAwaitAllsThatATimeoutEndsTogetherShareNothing(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(outer context.Context) error {
				return async.Scope(outer, func(ctx context.Context) error {
					for range 4 {
						f := async.Execute(outer, obedient(0, 0, nil))
						async.Go(ctx, func(ctx context.Context) error { return async.AwaitAll(ctx, time.Minute, f)[0].Err })
					}
					return nil
				}, async.Timeout(time.Second))
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestACauseThatMentionsACycleAbortsLikeAnyOther(t *testing.T) {
	for _, cause := range []error{errPlanted, fmt.Errorf("%w: a -> b", async.ErrAwaitCycle)} {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(outer context.Context) error {
				f := async.Execute(outer, obedient(0, 0, nil))
				ctx, cancel := context.WithCancelCause(outer)
				cancel(cause)
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, cause)
				require.Contains(t, []async.State{async.Aborting, async.Done}, f.State())
				f.Cancel(nil)
				return nil
			})
		})
	}
}

// TestTheCauseOfAWaitsContextReachesTheTaskAsItIs though it is what another
// wait returned that was cut short.
func TestTheCauseOfAWaitsContextReachesTheTaskAsItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(outer context.Context) error {
			var got, want error
			f := async.Execute(outer, func(ctx context.Context) (int, error) { <-ctx.Done(); got = context.Cause(ctx); return 0, nil })
			_ = async.Scope(outer, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					mine, cancel := context.WithCancelCause(ctx)
					never, _ := async.NewPromise[int](ctx)
					time.AfterFunc(time.Second, func() { cancel(errPlanted) })
					_, err := never.Await(mine, 0)
					return err
				})
				_, _ = f.Await(ctx, 0)
				want = context.Cause(ctx)
				return nil
			})
			synctest.Wait()
			require.ErrorIs(t, want, errPlanted)
			require.Same(t, want, got)
			return nil
		})
	})
}

// TestATimeoutErrorSaysHowLongWasWaitedThoughTheContextEndsToo at that instant.
func TestATimeoutErrorSaysHowLongWasWaitedThoughTheContextEndsToo(t *testing.T) {
	for range 2000 / raceFactor {
		inBubble(t, func(_ *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(outer context.Context) error {
				f := async.Execute(outer, obedient(0, 0, context.Canceled))
				ctx, cancel := context.WithTimeout(outer, time.Second)
				defer cancel()
				_, err := f.Await(ctx, time.Second)
				if expired := (*async.TimeoutError)(nil); errors.As(err, &expired) {
					require.GreaterOrEqual(t, expired.Waited, time.Second)
				}
				return nil
			})
		})
	}
}

func TestATieOfManyResultsAndTheLimitOfAwaitAllIsTheResults(t *testing.T) {
	for range max(30, 300/raceFactor) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				var fs []*async.Future[int]
				for range 4 {
					fs = append(fs, async.Execute(ctx, stubborn(time.Second, 1, nil)))
				}
				for _, r := range async.AwaitAll(ctx, time.Second, fs...) {
					require.NoError(t, r.Err)
				}
				return nil
			}))
		})
	}
}

// TestAwaitAllWaitsForAPromiseItHasNotComeTo: who is abandoned while it is at
// an earlier one has a waiter.
func TestAwaitAllWaitsForAPromiseItHasNotComeTo(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, slow, f *async.Future[int]){
		"Await":    func(ctx context.Context, _, f *async.Future[int]) { _, _ = f.Await(ctx, 0) },
		"AwaitAll": func(ctx context.Context, slow, f *async.Future[int]) { async.AwaitAll(ctx, 0, slow, f) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
					slow := async.Execute(outer, stubborn(time.Hour, 1, nil))
					require.ErrorIs(t, async.Scope(outer, func(ctx context.Context) error {
						f, _ := async.NewPromise[int](ctx)
						async.Go(outer, func(ctx context.Context) error { wait(ctx, slow, f); return nil })
						synctest.Wait()
						return nil
					}), async.ErrAbandoned)
					return nil
				}))
			})
		})
	}
}

func TestAFailureThatAwaitAllHasNotComeToIsToldToItAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
			slow := async.Execute(outer, stubborn(time.Hour, 1, nil))
			var all *async.Future[[]async.Result[int]]
			require.NoError(t, async.Scope(outer, func(ctx context.Context) error {
				f := async.Execute(ctx, stubborn(time.Second, 0, errPlanted))
				all = async.Execute(outer, func(ctx context.Context) ([]async.Result[int], error) { return async.AwaitAll(ctx, 0, slow, f), nil })
				synctest.Wait()
				return nil
			}))
			r, err := all.Await(outer, 0)
			require.Equal(t, errPlanted, r[1].Err)
			return err
		}))
	})
}

// TestAFailureIsNotLostToAWaitThatIsRefusedAsACycle has a task fail just as a
// bare goroutine of its own awaits it.
func TestAFailureIsNotLostToAWaitThatIsRefusedAsACycle(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 10_000 / raceFactor {
		var told error
		var bare sync.WaitGroup
		err := async.Scope(ctx, func(ctx context.Context) error {
			self := make(chan *async.Future[int], 1)
			self <- async.Execute(ctx, func(ctx context.Context) (int, error) {
				f := <-self
				var started atomic.Bool
				bare.Go(func() {
					started.Store(true)
					for range rand.IntN(200) {
						started.Load()
					}
					_, told = f.Wait(ctx)
				})
				for !started.Load() {
					runtime.Gosched()
				}
				for range rand.IntN(400) {
					started.Load()
				}
				return 0, errPlanted
			})
			return nil
		})
		bare.Wait()
		require.ErrorIs(t, errors.Join(err, told), errPlanted)
	}
}

func TestAStragglerThatWasLetGoMayAwaitItsOldTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			self := make(chan *async.Future[int], 1)
			f := async.Execute(ctx, func(ctx context.Context) (int, error) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						time.Sleep(time.Minute)
						v, err := (<-self).Wait(context.WithoutCancel(ctx))
						require.Equal(t, 1, v)
						return err
					})
					return nil
				}, async.Timeout(time.Second), async.DetachAfter(time.Second))
				time.Sleep(time.Hour)
				return 1, nil
			})
			self <- f
			_, err := f.Await(ctx, 0)
			return err
		}))
	})
}

func TestATaskThatEndsIsNotSaidToBeAborting(t *testing.T) {
	for range 2000 / raceFactor {
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			f := async.Execute(ctx, answer)
			for s := f.State(); s != async.Done; s = f.State() {
				require.NotEqual(t, async.Aborting, s)
				runtime.Gosched()
			}
			return nil
		})
	}
	var f atomic.Pointer[async.Future[int]]
	ready := make(chan struct{})
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		f.Store(async.Execute(ctx, func(context.Context) (int, error) { <-ready; return 1, nil }))
		close(ready)
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if f := f.Load(); e.Kind == async.EventEnd && f != nil {
			require.NotEqual(t, async.Aborting, f.State())
		}
	}))))
}

// TestADeepChainOfWaitsKeepsItsStacksSmall: what looks up the tree does not
// recurse at every level.
func TestADeepChainOfWaitsKeepsItsStacksSmall(t *testing.T) {
	depth := max(700, 2000/raceFactor)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var down func(ctx context.Context, n int) (int, error)
	down = func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			runtime.ReadMemStats(&after)
			return 0, nil
		}
		return async.Execute(ctx, func(ctx context.Context) (int, error) { return down(ctx, n-1) }).Await(ctx, time.Minute)
	}
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { return second(down(ctx, depth)) }))
	require.Less(t, (int(after.StackInuse)-int(before.StackInuse))/depth, 32<<10)
}
