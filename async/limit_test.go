package async_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
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

// TestABareGoroutineDoesNotTakeTheSlotOfAHandlerThatWaits: two waits of one
// task, the first of which ends while the other needs the slot lent.
func TestABareGoroutineDoesNotTakeTheSlotOfAHandlerThatWaits(t *testing.T) {
	limitedScope(t, 1, func(_ *testing.T, ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			f := async.Execute(ctx, stubborn(time.Second, 1, nil))
			g := async.Execute(ctx, answer)
			go func() { _, _ = f.Wait(ctx) }()
			synctest.Wait()
			return second(g.Await(ctx, time.Minute))
		})
		return nil
	})
}

// TestNoWaitUnderALimitIsForgotten has a handler and bare goroutines wait under
// one ctx, which lend and claim the one slot by turns. A wait that is not woken
// hangs.
func TestNoWaitUnderALimitIsForgotten(t *testing.T) {
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			var bare sync.WaitGroup
			stop := make(chan struct{})
			defer bare.Wait()
			defer close(stop)
			for range 2 {
				bare.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							_, _ = async.Execute(ctx, answer).Wait(ctx)
						}
					}
				})
			}
			for range 30_000 / raceFactor {
				if _, err := async.Execute(ctx, answer).Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	}, async.Limit(64)))
}

func TestTheJoinOfATaskHoldsNoSlot(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		order := make(chan string, 10)
		async.Go(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { order <- "grandchild"; return nil })
				order <- "child"
				return nil
			})
			order <- "handler"
			return nil
		})
		for _, want := range []string{"handler", "child", "grandchild"} {
			require.Equal(t, want, <-order)
		}
		return nil
	})
}

// TestATaskThatAwaitsInABareGoroutineLosesNoSlot: the goroutine uses the ctx
// of a task that has ended by the time its wait does.
func TestAWaitOfABareGoroutineLosesNoSlot(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[int]){
		"Wait":              func(ctx context.Context, f *async.Future[int]) { _, _ = f.Wait(ctx) },
		"a derived context": func(ctx context.Context, f *async.Future[int]) { _, _ = f.Wait(context.WithValue(ctx, cycleKey{}, 1)) },
		"beyond the task":   func(ctx context.Context, f *async.Future[int]) { _, _ = f.Wait(context.WithoutCancel(ctx)) },
		"AwaitAll":          func(ctx context.Context, f *async.Future[int]) { async.AwaitAll(ctx, time.Minute, f) },
	} {
		t.Run(name, func(t *testing.T) {
			var c runCount
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				never, p := async.NewPromise[int](ctx)
				for range 3 {
					async.Go(ctx, func(ctx context.Context) error {
						go wait(ctx, never)
						go wait(ctx, never)
						time.Sleep(time.Second)
						return nil
					})
				}
				time.Sleep(time.Minute)
				for range 3 {
					async.Go(ctx, func(context.Context) error {
						c.enter()
						defer c.out()
						time.Sleep(time.Second)
						return nil
					})
				}
				time.Sleep(time.Minute)
				require.EqualValues(t, 3, c.entered.Load())
				require.EqualValues(t, 1, c.most.Load())
				p.Resolve(1)
				return nil
			})
		})
	}
}

// TestASettlingTaskHandsItsSlotToWhoWaitedForIt: and starts nothing new before, whether or not anybody observes.
func TestASettlingTaskHandsItsSlotToWhoWaitedForIt(t *testing.T) {
	observers := map[string][]async.ScopeOption{
		"": nil, ", observed": {async.Observe(async.ObserverFunc(func(async.Event) {}))}, ", entered": {async.Observe(new(giver))}, ", profiled": {async.Profile()},
	}
	for name, await := range map[string]func(context.Context, *async.Future[int]) error{
		"Await": func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, 0); return err },
		"Await in a Scope": func(ctx context.Context, f *async.Future[int]) error {
			return async.Scope(ctx, func(ctx context.Context) error { _, err := f.Await(ctx, time.Hour); return err })
		},
		"Wait":     func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(ctx); return err },
		"AwaitAll": func(ctx context.Context, f *async.Future[int]) error { return async.AwaitAll(ctx, 0, f)[0].Err },
	} {
		for observed, options := range observers {
			t.Run(name+observed, func(t *testing.T) {
				limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
					return async.Scope(ctx, func(ctx context.Context) error { return settleInOrder(ctx, t, await) }, options...)
				})
			})
		}
	}
}

func settleInOrder(ctx context.Context, t *testing.T, await func(context.Context, *async.Future[int]) error) error {
	var order []string // one runs at a time: no lock needed
	note := func(what string) func(context.Context) error {
		return func(context.Context) error { order = append(order, what); return nil }
	}
	top := async.Start(ctx, func(ctx context.Context) error {
		async.Go(ctx, note("before"))
		child := async.Execute(ctx, func(context.Context) (int, error) {
			for range 3 {
				async.Go(ctx, note("after"))
			}
			return 1, note("child")(nil)
		})
		async.Go(ctx, note("after"))
		err := await(ctx, child)
		_ = note("waiter")(nil)
		return err
	})
	_, err := top.Await(ctx, 0)
	require.Equal(t, []string{"before", "child", "waiter", "after", "after", "after", "after"}, order)
	return err
}

func TestBodiesNeedNoSlot(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		busy := async.Execute(ctx, stubborn(time.Hour, 1, nil))
		synctest.Wait()
		start := time.Now()
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Shield(ctx, time.Hour, func(context.Context) error { return nil })
		}))
		tookAbout(t, 0, start)
		_, err := busy.Await(ctx, 0)
		return err
	})
}

func TestWaitingUnderAnotherTasksContextLendsNothing(t *testing.T) {
	limitedScope(t, 2, func(t *testing.T, outer context.Context) error {
		// The body has no slot. A task that waits under the body's ctx keeps
		// its own, so of the two slots one is left.
		var c runCount
		work := func(context.Context) (int, error) {
			c.enter()
			defer c.out()
			time.Sleep(time.Second)
			return 1, nil
		}
		started := make(chan struct{})
		async.Go(outer, func(context.Context) error {
			close(started)
			var all []*async.Future[int]
			for range 5 {
				all = append(all, async.Execute(outer, work))
			}
			for _, r := range async.AwaitAll(outer, 0, all...) {
				require.NoError(t, r.Err)
			}
			return nil
		})
		<-started
		async.OnExit(outer, func(context.Context, error) error {
			require.EqualValues(t, 1, c.most.Load())
			return nil
		})
		return nil
	})
}

func TestChannelOperationsLendNothing(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		open := make(chan struct{})
		async.Go(ctx, func(context.Context) error { <-open; return nil })
		f := async.Execute(ctx, answer)
		synctest.Wait()
		require.Equal(t, async.StateQueued, f.State())
		close(open)
		_, err := f.Await(ctx, 0)
		return err
	})
}
