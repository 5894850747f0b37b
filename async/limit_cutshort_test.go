package async_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAnAwaitCutShortReturnsAtOnceAndTheNextFreeSlotPays: a has lent its slot
// to b and comes back while b runs on. Then two run with Limit(1), and c has
// to wait until both have gone.
func TestAnAwaitCutShortReturnsAtOnceAndTheNextFreeSlotPays(t *testing.T) {
	for name, await := range map[string]func(ctx context.Context, f *async.Future[int]) error{
		"Await, its limit": func(ctx context.Context, f *async.Future[int]) error {
			_, err := f.Await(ctx, time.Second)
			return err
		},
		"Await, its context": func(ctx context.Context, f *async.Future[int]) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := f.Await(ctx, 0)
			return err
		},
		"Wait, its context": func(ctx context.Context, f *async.Future[int]) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := f.Wait(ctx)
			return err
		},
		"AwaitAll, its limit": func(ctx context.Context, f *async.Future[int]) error {
			return async.AwaitAll(ctx, time.Second, async.Completed(1, nil), f)[1].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				start := time.Now()
				at := func() time.Duration { return time.Since(start).Truncate(time.Microsecond) }
				var b, c *async.Future[time.Duration]
				a := async.Execute(ctx, func(ctx context.Context) (time.Duration, error) {
					inner := async.Execute(ctx, stubborn(10*time.Second, 1, nil))
					err := await(ctx, inner)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					back := at()
					time.Sleep(19 * time.Second)
					return back, nil
				})
				c = async.Execute(ctx, func(context.Context) (time.Duration, error) { return at(), nil })
				b = async.Execute(ctx, func(context.Context) (time.Duration, error) { return at(), nil })
				got := async.AwaitAll(ctx, 0, a, c, b)
				for _, r := range got {
					require.NoError(t, r.Err)
				}
				require.Equal(t, time.Second, got[0].Value, "on time, although no slot was free")
				require.Equal(t, 20*time.Second, got[1].Value, "the slot that became free at 10 s paid")
				require.Equal(t, 20*time.Second, got[2].Value)
				return nil
			})
		})
	}
}

func TestManyCutShortWaitsPayEverySlot(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var c runCount
			limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
				for range 50 {
					async.Go(ctx, func(ctx context.Context) error {
						f := async.Execute(ctx, stubborn(3*time.Second, 0, nil))
						_, _ = f.Await(ctx, time.Second)
						_, _ = f.Await(ctx, time.Second)
						_, err := f.Await(ctx, 0)
						return err
					})
				}
				return nil
			})
			limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
				// Debts of an earlier stretch are paid, neither forgotten nor
				// paid twice: afterwards exactly n run.
				err := async.Scope(ctx, func(ctx context.Context) error {
					for range 20 {
						async.Go(ctx, func(ctx context.Context) error {
							_, _ = async.Execute(ctx, stubborn(3*time.Second, 0, nil)).Await(ctx, time.Second)
							return nil
						})
					}
					return nil
				})
				start := time.Now()
				for range 4 * n {
					async.Go(ctx, func(context.Context) error {
						c.enter()
						defer c.out()
						time.Sleep(time.Second)
						return nil
					})
				}
				async.OnExit(ctx, func(context.Context, error) error { tookAbout(t, 4*time.Second, start); return nil })
				return err
			})
			require.EqualValues(t, n, c.most.Load())
		})
	}
}

// TestLimitUnderFire: waits cut short, cancelled queues and nested scopes on
// real threads. At the end every slot must be there.
func TestNoSlotIsLostUnderFire(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				for round := range 20 {
					err := async.Scope(ctx, func(ctx context.Context) error {
						for i := range 100 {
							async.Go(ctx, func(ctx context.Context) error {
								f := async.Execute(ctx, func(ctx context.Context) (int, error) {
									for range (i + round) % 5 {
										runtime.Gosched()
									}
									g := async.Execute(ctx, answer)
									_, _ = g.Await(ctx, time.Duration(i%3))
									return 1, nil
								})
								switch i % 4 {
								case 0:
									f.Cancel(errLimitWhy)
								case 1:
									brief, cancel := context.WithCancel(ctx)
									go cancel()
									_, _ = f.Wait(brief)
								case 2:
									_, _ = f.Await(ctx, 1)
								}
								_, _ = f.Wait(ctx)
								return nil
							})
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
				var c runCount
				var meet sync.WaitGroup // all n slots must be there: n tasks meet
				meet.Add(n)
				for range n {
					async.Go(ctx, func(context.Context) error {
						c.enter()
						defer c.out()
						meet.Done()
						meet.Wait()
						return nil
					})
				}
				return nil
			}, async.Limit(n)))
		})
	}
}

// TestAWaitCutShortLeavesNothingForTheNext has waits expire just as their slot
// comes back. The next wait of the same task must not be told that by mistake.
func TestAWaitCutShortLeavesNothingForTheNext(t *testing.T) {
	spin := func(d time.Duration, v int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			for start := time.Now(); time.Since(start) < d; {
			}
			return v, nil
		}
	}
	us := func(n int) time.Duration { return time.Duration(1+rand.IntN(n)) * time.Microsecond }
	for range 4 {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 4 {
				async.Go(ctx, func(ctx context.Context) error {
					for range 200 {
						work := us(60)
						_, _ = async.Execute(ctx, spin(work, 1)).Await(ctx, us(120))
						v, err := async.Execute(ctx, spin(work, 2)).Wait(ctx)
						if v != 2 || err != nil {
							return fmt.Errorf("got %d, %w", v, err)
						}
					}
					return nil
				})
			}
			return nil
		}, async.Limit(1)))
	}
}
