package async_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A runCount counts handlers that run: they enter, step out while they wait in
// the package, and leave.
type runCount struct{ now, most, entered atomic.Int64 }

func (c *runCount) enter() {
	c.entered.Add(1)
	c.back()
}

func (c *runCount) back() {
	now := c.now.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
}

func (c *runCount) out() { c.now.Add(-1) }

// outside calls wait with the handler counted as waiting.
func (c *runCount) outside(wait func() error) error {
	c.out()
	defer c.back()
	return wait()
}

// limitedScope runs body in a bubble and a scope with Limit(n).
func limitedScope(t *testing.T, n int, body func(t *testing.T, ctx context.Context) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			return body(t, ctx)
		}, async.Limit(n)))
	})
}

func TestNeverMoreThanLimitHandlersRun(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const tasks = 200
			var c runCount
			start := time.Now()
			took := time.Duration(0)
			limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
				start = time.Now()
				for i := range tasks {
					work := func(context.Context) error {
						c.enter()
						defer c.out()
						time.Sleep(time.Second)
						return nil
					}
					if i%2 == 0 {
						async.Go(ctx, work)
					} else {
						async.Start(ctx, work)
					}
				}
				async.OnExit(ctx, func(context.Context, error) error { took = time.Since(start); return nil })
				tookAbout(t, 0, start) // starting never blocks
				return nil
			})
			require.EqualValues(t, n, c.most.Load())
			require.EqualValues(t, tasks, c.entered.Load())
			require.Equal(t, time.Duration((tasks+n-1)/n)*time.Second, took, "and no slot is left idle")
		})
	}
}

// TestLimitHoldsForRandomTrees builds trees of tasks that start, await, sleep
// and open scopes, and counts who runs.
func TestLimitHoldsForRandomTreesOfTasks(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(n, "/", seed), func(t *testing.T) {
				var c runCount
				var started atomic.Int64
				var grow func(rng *rand.Rand, depth int) func(context.Context) (int, error)
				grow = func(rng *rand.Rand, depth int) func(context.Context) (int, error) {
					seeds := [6]uint64{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()}
					plan := rng.Perm(6)[:rng.IntN(6)]
					return func(ctx context.Context) (int, error) {
						c.enter()
						defer c.out()
						if depth == 0 {
							time.Sleep(time.Duration(seeds[0]%3) * time.Millisecond)
							return 1, nil
						}
						child := func(i int) func(context.Context) (int, error) {
							started.Add(1)
							return grow(rand.New(rand.NewPCG(seeds[i], 0)), depth-1)
						}
						goChild := func(i int) func(context.Context) error {
							f := child(i)
							return func(ctx context.Context) error { _, err := f(ctx); return err }
						}
						for _, what := range plan {
							err := error(nil)
							switch what {
							case 0:
								f := async.Execute(ctx, child(0))
								err = c.outside(func() error { _, err := f.Await(ctx, 0); return err })
							case 1:
								fs := []*async.Future[int]{async.Execute(ctx, child(1)), async.Execute(ctx, child(1))}
								err = c.outside(func() error { return async.AwaitAll(ctx, time.Hour, fs...)[1].Err })
							case 2:
								async.Go(ctx, goChild(2))
							case 3:
								two := [2]func(context.Context) error{goChild(3), goChild(3)}
								err = c.outside(func() error {
									return async.Scope(ctx, func(ctx context.Context) error {
										async.Go(ctx, two[0])
										async.Go(ctx, two[1])
										return nil
									})
								})
							case 4:
								time.Sleep(time.Duration(seeds[4]%5) * time.Millisecond)
							case 5:
								brief, cancel := context.WithTimeout(ctx, time.Hour)
								f := async.Execute(brief, child(5))
								err = c.outside(func() error { _, err := f.Wait(brief); return err })
								cancel()
							}
							if err != nil {
								return 0, err
							}
						}
						return 1, nil
					}
				}
				limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
					rng := rand.New(rand.NewPCG(seed, 7))
					for range 8 {
						started.Add(1)
						async.Execute(ctx, grow(rng, 3))
					}
					return nil
				})
				require.LessOrEqual(t, c.most.Load(), int64(n))
				require.Equal(t, started.Load(), c.entered.Load(), "everything that was started has run")
				require.Zero(t, c.now.Load())
			})
		}
	}
}

func TestALimitBelowOnePanics(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt} {
		require.NotNil(t, panicFrom(func() { async.Limit(n) }), "Limit(%d)", n)
	}
}

func TestASlotIsHeldUntilTheHandlerReturns(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		start := time.Now()
		// Abandoned by its waiter, but it still runs and so holds its slot.
		_, err := async.Execute(ctx, stubborn(time.Hour, 1, nil)).Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = async.Execute(ctx, answer).Await(ctx, 0)
		tookAbout(t, time.Hour, start)
		return err
	})
}

func TestFailuresGiveTheirSlotsBack(t *testing.T) {
	boom := errors.New("boom")
	for name, fail := range map[string]func(context.Context) (int, error){
		"error":  func(context.Context) (int, error) { return 0, boom },
		"panic":  func(context.Context) (int, error) { panic(boom) },
		"Goexit": func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
		"panic after a wait": func(ctx context.Context) (int, error) {
			_, _ = async.Execute(ctx, answer).Await(ctx, 0)
			panic(boom)
		},
		"panic in a scope": func(ctx context.Context) (int, error) {
			return 0, async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { panic(boom) })
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				for range 3 {
					_, err := async.Execute(ctx, fail).Await(ctx, 0)
					require.Error(t, err)
				}
				var c runCount
				work := func(context.Context) (int, error) {
					c.enter()
					defer c.out()
					time.Sleep(time.Second)
					return 1, nil
				}
				async.AwaitAll(ctx, 0, async.Execute(ctx, work), async.Execute(ctx, work))
				require.EqualValues(t, 1, c.most.Load())
				require.EqualValues(t, 2, c.entered.Load())
				return nil
			})
		})
	}
}

func TestHooksOfALimitedTaskMayStartTasks(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				v, err := async.Execute(ctx, answer).Await(ctx, 0)
				require.Equal(t, 42, v)
				return err
			})
			untilStopped(ctx)
			return 1, nil
		}, async.OnAbort(func(ctx context.Context, _ error) error {
			_, err := async.Execute(ctx, answer).Await(ctx, 0)
			return err
		}))
		_, err := f.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v, err := f.Await(ctx, time.Second)
		require.Equal(t, 1, v)
		return err
	})
}
