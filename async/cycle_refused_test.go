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

func TestACycleTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			var a *async.Future[int]
			known := make(chan struct{})
			done := async.Completed(1, nil)
			a = async.Execute(ctx, func(ctx context.Context) (int, error) {
				<-known
				all := async.AwaitAll(ctx, time.Minute, done, a, done)
				require.NoError(t, all[0].Err)
				require.ErrorIs(t, all[1].Err, async.ErrAwaitCycle)
				require.NoError(t, all[2].Err, "the others of an AwaitAll are awaited all the same")
				_, err := a.Await(ctx, -1)
				require.Error(t, err)
				return 5, nil
			}, async.OnAbort(func(context.Context, error) error { return nil }))
			close(known)
			v, err := a.Wait(ctx)
			require.Equal(t, 5, v)
			return err
		}))
	})
}

func TestAwaitsInTheOrderOfADAGAreNeverTakenForACycle(t *testing.T) {
	const tasks, rounds = 200, 20
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			all := make([]*async.Future[int], tasks)
			ready := make(chan struct{})
			for i := range tasks {
				var on []int
				for range min(i, rng.IntN(6)) {
					on = append(on, rng.IntN(i))
				}
				nested := rng.IntN(3) == 0
				all[i] = async.Execute(ctx, func(ctx context.Context) (int, error) {
					<-ready
					await := func(ctx context.Context) error {
						for _, j := range on {
							if v, err := all[j].Await(ctx, 0); err != nil || v != j {
								return fmt.Errorf("%d awaiting %d: %v, %w", i, j, v, err)
							}
						}
						return nil
					}
					if nested {
						return i, async.Scope(ctx, func(ctx context.Context) error {
							async.Go(ctx, await)
							return await(ctx)
						})
					}
					return i, await(ctx)
				})
			}
			close(ready)
			for i, r := range async.AwaitAll(ctx, 0, all...) {
				if r.Err != nil || r.Value != i {
					return fmt.Errorf("%d: %v, %w", i, r.Value, r.Err)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// TestWaitsThatComeAndGoAreNotTakenForACycle: a waits for b and gives up, then
// b waits for a, again and again, so an edge that is gone must not be believed.
func TestWaitsThatComeAndGoAreNotTakenForACycle(t *testing.T) {
	const rounds = 5000
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		var a, b *async.Future[int]
		known := make(chan struct{})
		turn := make(chan struct{}, 1)
		turn <- struct{}{}
		observe := func(other **async.Future[int]) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				<-known
				for range rounds {
					<-turn // only one of the two waits at any time
					brief, cancel := context.WithCancel(ctx)
					go cancel()
					_, err := (*other).Wait(brief)
					turn <- struct{}{}
					if _, _, settled := (*other).Result(); !settled {
						require.NotErrorIs(t, err, async.ErrAwaitCycle)
					}
				}
				return 1, nil
			}
		}
		a = async.Execute(ctx, observe(&b))
		b = async.Execute(ctx, observe(&a))
		close(known)
		for _, r := range async.AwaitAll(ctx, 0, a, b) {
			require.NoError(t, r.Err)
		}
		return nil
	}))
}

// TestAWaitThatIsRefusedIsNoPartOfAnotherRing: somebody awaits an ancestor, which
// is refused; who awaits that somebody is not.
func TestAWaitThatIsRefusedIsNoPartOfAnotherRing(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 50_000 / raceFactor {
		var top *async.Future[int]
		known := make(chan struct{})
		top = async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-known
			return async.Execute(ctx, func(ctx context.Context) (int, error) {
				_, err := top.Await(ctx, 0)
				require.ErrorIs(t, err, async.ErrAwaitCycle)
				return 3, nil
			}).Await(ctx, 0)
		})
		close(known)
		v, err := top.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 3, v)
	}
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
