package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
)

func TestNestedLimits(t *testing.T) {
	for _, test := range []struct{ outer, inner int }{{1, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 2}, {3, 3}, {64, 2}, {2, 64}} {
		t.Run(fmt.Sprint(test.outer, "/", test.inner), func(t *testing.T) {
			var whole runCount
			limitedScope(t, test.outer, func(t *testing.T, ctx context.Context) error {
				for range 4 {
					async.Go(ctx, func(ctx context.Context) error {
						whole.enter()
						defer whole.out()
						var part runCount
						err := whole.outside(func() error {
							return async.Scope(ctx, func(ctx context.Context) error {
								for range 10 {
									async.Go(ctx, func(ctx context.Context) error {
										whole.enter()
										defer whole.out()
										part.enter()
										defer part.out()
										time.Sleep(time.Second)
										f := async.Execute(ctx, func(context.Context) (int, error) {
											whole.enter()
											defer whole.out()
											part.enter()
											defer part.out()
											time.Sleep(time.Second)
											return 1, nil
										})
										return whole.outside(func() error {
											return part.outside(func() error { _, err := f.Await(ctx, 0); return err })
										})
									})
								}
								return nil
							}, async.Limit(test.inner))
						})
						require.LessOrEqual(t, part.most.Load(), int64(test.inner))
						return err
					})
				}
				return nil
			})
			require.LessOrEqual(t, whole.most.Load(), int64(test.outer))
		})
	}
}

func TestAnInnerLimitTakesTheInnerSlotFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(outer context.Context) error {
			return async.Scope(outer, func(inner context.Context) error {
				start := time.Now()
				at := func(context.Context) (time.Duration, error) { return time.Since(start), nil }
				async.Go(inner, func(context.Context) error { time.Sleep(time.Second); return nil })
				waits := async.Execute(inner, at) // for an inner slot, and holds no outer one meanwhile
				free := async.Execute(outer, at)
				got := async.AwaitAll(inner, 0, waits, free)
				require.Equal(t, time.Second, got[0].Value)
				require.Zero(t, got[1].Value)
				return nil
			}, async.Limit(1))
		}, async.Limit(2)))
	})
}

func TestAQueuedTaskOfANestedLimitIsSettledWhenCancelled(t *testing.T) {
	for _, limits := range [][2]int{{1, 5}, {5, 1}, {1, 1}} {
		t.Run(fmt.Sprint(limits), func(t *testing.T) {
			limitedScope(t, limits[0], func(t *testing.T, ctx context.Context) error {
				hold := async.Execute(ctx, stubborn(time.Hour, 1, nil))
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					for range limits[1] {
						async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
					}
					f := async.Execute(ctx, func(context.Context) (int, error) { t.Error("ran"); return 0, nil })
					_, err := f.Await(ctx, time.Second)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, async.StateDone, f.State())
					v, err := async.Execute(ctx, stubborn(time.Second, 3, nil)).Await(ctx, 0)
					require.Equal(t, 3, v)
					return err
				}, async.Limit(limits[1])))
				_, err := hold.Await(ctx, 0)
				return err
			})
		})
	}
}

// TestATaskThatReturnsGoesBeforeOneThatHasNotStarted though that holds the inner
// slot already, and queues for the outer one.
func TestATaskThatReturnsGoesBeforeOneThatHasNotStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var back time.Duration
		lasts := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
			async.Go(outer, lasts(time.Hour))
			return async.Scope(outer, func(inner context.Context) error {
				async.Go(inner, func(ctx context.Context) error {
					defer func() { back = time.Since(begin) }()
					return async.Sleep(ctx, time.Second) // lends both slots
				})
				synctest.Wait()
				async.Go(outer, lasts(2*time.Second)) // takes the outer one
				synctest.Wait()
				async.Go(inner, lasts(time.Minute)) // takes the inner one
				return nil
			}, async.Limit(1))
		}, async.Limit(2)))
		require.Equal(t, 2*time.Second, back)
	})
}

func TestNestedWaitsFinishAtAnyDepth(t *testing.T) {
	var down map[string]func(c *runCount, ctx context.Context, left int) (int, error)
	enter := func(kind string, c *runCount, left int) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			c.enter()
			defer c.out()
			if left == 0 {
				return 0, nil
			}
			return down[kind](c, ctx, left)
		}
	}
	down = map[string]func(c *runCount, ctx context.Context, left int) (int, error){
		"Await": func(c *runCount, ctx context.Context, left int) (v int, err error) {
			f := async.Execute(ctx, enter("Await", c, left-1))
			err = c.outside(func() error { v, err = f.Await(ctx, 0); return err })
			return v + 1, err
		},
		"Await under a derived context": func(c *runCount, ctx context.Context, left int) (v int, err error) {
			f := async.Execute(ctx, enter("Await under a derived context", c, left-1))
			ctx = context.WithValue(ctx, cycleKey{}, left)
			err = c.outside(func() error { v, err = f.Await(ctx, time.Hour); return err })
			return v + 1, err
		},
		"Wait": func(c *runCount, ctx context.Context, left int) (v int, err error) {
			f := async.Execute(ctx, enter("Wait", c, left-1))
			err = c.outside(func() error { v, err = f.Wait(ctx); return err })
			return v + 1, err
		},
		"AwaitAll": func(c *runCount, ctx context.Context, left int) (v int, err error) {
			f := async.Execute(ctx, enter("AwaitAll", c, left-1))
			err = c.outside(func() error {
				r := async.AwaitAll(ctx, 0, f, async.Completed(0, nil))
				v = r[0].Value
				return r[0].Err
			})
			return v + 1, err
		},
		"the join of a Scope": func(c *runCount, ctx context.Context, left int) (v int, err error) {
			err = c.outside(func() error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) (err error) {
						v, err = enter("the join of a Scope", c, left-1)(ctx)
						return err
					})
					return nil
				})
			})
			return v + 1, err
		},
		"an Await in the body of a Scope": func(c *runCount, ctx context.Context, left int) (v int, err error) {
			err = c.outside(func() error {
				return async.Scope(ctx, func(ctx context.Context) error {
					v, err = async.Execute(ctx, enter("an Await in the body of a Scope", c, left-1)).Await(ctx, 0)
					return err
				})
			})
			return v + 1, err
		},
	}
	for kind := range down {
		for _, test := range []struct{ n, depth int }{{1, 1000}, {2, 50}, {64, 50}} {
			n, depth := test.n, test.depth
			if kind != "Await" || raceFactor > 1 {
				depth = min(depth, 200) // the rest takes the same ways down
			}
			t.Run(fmt.Sprint(n, "/", kind), func(t *testing.T) {
				var c runCount
				limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
					v, err := async.Execute(ctx, enter(kind, &c, depth)).Await(ctx, 0)
					require.Equal(t, depth, v)
					return err
				})
				require.LessOrEqual(t, c.most.Load(), int64(n))
			})
		}
	}
}

func TestDivideAndConquerNeedsFewGoroutines(t *testing.T) {
	ways := map[string]func(ctx context.Context, lo, hi int, sum func(context.Context, int, int) (int, error)) (int, error){
		"two futures": func(ctx context.Context, lo, hi int, sum func(context.Context, int, int) (int, error)) (int, error) {
			mid := (lo + hi) / 2
			half := func(lo, hi int) *async.Future[int] {
				return async.Execute(ctx, func(ctx context.Context) (int, error) { return sum(ctx, lo, hi) })
			}
			total := 0
			for _, r := range async.AwaitAll(ctx, 0, half(lo, mid), half(mid, hi)) {
				if r.Err != nil {
					return 0, r.Err
				}
				total += r.Value
			}
			return total, nil
		},
		"one future, one Await after the other": func(ctx context.Context, lo, hi int, sum func(context.Context, int, int) (int, error)) (int, error) {
			mid := (lo + hi) / 2
			half := func(lo, hi int) *async.Future[int] {
				return async.Execute(ctx, func(ctx context.Context) (int, error) { return sum(ctx, lo, hi) })
			}
			left, right := half(lo, mid), half(mid, hi)
			a, err := left.Await(ctx, 0)
			if err != nil {
				return 0, err
			}
			b, err := right.Await(ctx, 0)
			return a + b, err
		},
		"scopes": func(ctx context.Context, lo, hi int, sum func(context.Context, int, int) (int, error)) (int, error) {
			mid := (lo + hi) / 2
			var a, b int
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) (err error) { a, err = sum(ctx, lo, mid); return err })
				async.Go(ctx, func(ctx context.Context) (err error) { b, err = sum(ctx, mid, hi); return err })
				return nil
			})
			return a + b, err
		},
		"sixteen at once": func(ctx context.Context, lo, hi int, sum func(context.Context, int, int) (int, error)) (int, error) {
			var parts []*async.Future[int]
			step := max(1, (hi-lo+15)/16)
			for ; lo < hi; lo += step {
				from, to := lo, min(lo+step, hi)
				parts = append(parts, async.Execute(ctx, func(ctx context.Context) (int, error) { return sum(ctx, from, to) }))
			}
			total := 0
			for _, r := range async.AwaitAll(ctx, 0, parts...) {
				if r.Err != nil {
					return 0, r.Err
				}
				total += r.Value
			}
			return total, nil
		},
	}
	for n, names := range map[int][]string{
		1:  {"scopes"},
		2:  {"two futures"},
		64: {"one future, one Await after the other", "sixteen at once"},
	} {
		for _, name := range names {
			split := ways[name]
			leaves := 16_384
			if name != "two futures" {
				leaves = fewer(leaves, 2_048)
			}
			t.Run(fmt.Sprint(n, "/", name), func(t *testing.T) {
				before := runtime.NumGoroutine()
				var most atomic.Int64
				var sum func(ctx context.Context, lo, hi int) (int, error)
				sum = func(ctx context.Context, lo, hi int) (int, error) {
					if hi-lo == 1 {
						alive := int64(goroutines(before+20*n+100) - before)
						for m := most.Load(); alive > m && !most.CompareAndSwap(m, alive); m = most.Load() {
						}
						return lo, nil
					}
					return split(ctx, lo, hi, sum)
				}
				got := 0
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) (err error) {
					got, err = async.Execute(ctx, func(ctx context.Context) (int, error) { return sum(ctx, 0, leaves) }).Await(ctx, 0)
					return err
				}, async.Limit(n)))
				require.Equal(t, leaves*(leaves-1)/2, got)
				require.LessOrEqual(t, most.Load(), int64(20*n+100), "goroutines alive at once")
			})
		}
	}
}

// limitPairs are options that a limited task may have besides.
var limitPairs = map[string][]async.TaskOption{
	"none":      nil,
	"Timeout":   {async.Timeout(3 * time.Second)},
	"Daemon":    {async.Daemon()},
	"Heartbeat": {async.Heartbeat(3 * time.Second)},
	"OnAbort":   {async.OnAbort(func(ctx context.Context, _ error) error { return async.Sleep(ctx, time.Second) })},
	"Grace":     {async.Grace(2 * time.Second)},
	"Priority":  {async.Priority(3)},
	"refused":   {async.On(pool(func(func()) error { return errFull }))},
	"dropped":   {async.On(pool(func(func()) error { return nil }))},
	"twice":     {async.On(pool(func(task func()) error { go task(); go task(); return nil }))},
}

// TestNoPairOfOptionsLosesASlot stops tasks at every point of their way: before
// they are started, in the queue, while they run, wait, and after they have
// ended. Afterwards all slots are there.
func TestNoPairOfOptionsLosesASlot(t *testing.T) {
	const n = 2
	for name, options := range limitPairs {
		for exName, executor := range limitedOn {
			if exName == "refusing" {
				continue // there is a pair for it
			}
			for _, nested := range []int{0, 1} {
				t.Run(fmt.Sprint(name, "/", exName, "/", nested), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
							stopAtEveryPoint(t, ctx, options, nested)
							allSlotsAreThere(t, ctx, n)
							return nil
						}, async.Limit(n), async.On(executor()), async.OnFailure(func(error) error { return nil }))
					})
				})
			}
		}
	}
}

// stopAtEveryPoint starts tasks with options in a scope of its own, and stops
// them at some point.
func stopAtEveryPoint(t *testing.T, ctx context.Context, options []async.TaskOption, nested int) {
	scope := []async.ScopeOption{async.Timeout(30 * time.Second)}
	if nested > 0 {
		scope = append(scope, async.Limit(nested))
	}
	done, stop := context.WithCancel(ctx)
	stop()
	err := async.Scope(ctx, func(ctx context.Context) error {
		work := func(ctx context.Context) (int, error) {
			f := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
			_, err := f.Wait(ctx)
			return 1, errors.Join(err, async.Sleep(ctx, 4*time.Second))
		}
		for i := range 12 {
			f := async.Execute(ctx, work, options...)
			switch i % 4 {
			case 0:
				f.Cancel(errLimitWhy)
			case 1:
				_, _ = f.Await(ctx, time.Duration(i)*time.Second/2)
			case 2:
				time.AfterFunc(time.Duration(i)*time.Second/2, func() { f.Cancel(errLimitWhy) })
			}
			_, _ = async.Execute(done, work, options...).Wait(ctx)
			_, _ = async.ForkJoin(done, []int{1, 2, 3}, func(ctx context.Context, _ int) (int, error) { return work(ctx) }).Wait(ctx)
			_, _ = async.Race(ctx, work, answer, work).Await(ctx, time.Second)
		}
		return nil
	}, scope...)
	t.Log(err)
}

// allSlotsAreThere has n tasks meet, and no more than n.
func allSlotsAreThere(t *testing.T, ctx context.Context, n int) {
	var c runCount
	var all []*async.Future[int]
	for range 3 * n {
		all = append(all, async.Execute(ctx, func(context.Context) (int, error) {
			c.enter()
			defer c.out()
			time.Sleep(time.Second)
			return 1, nil
		}, async.On(pool(func(task func()) error { go task(); return nil }))))
	}
	for _, r := range async.AwaitAll(ctx, time.Minute, all...) {
		require.NoError(t, r.Err)
	}
	require.EqualValues(t, n, c.most.Load())
}

func TestAScopeThatLeavesQueuedTasksBehindLosesNoSlot(t *testing.T) {
	limitedScope(t, 2, func(t *testing.T, ctx context.Context) error {
		gate := make(chan struct{})
		var ran atomic.Int32
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { <-gate; return nil })
			async.Go(ctx, func(context.Context) error { <-gate; return nil })
			for range 3 {
				async.Go(context.WithoutCancel(ctx), func(context.Context) error { ran.Add(1); return nil })
			}
			return errLimitWhy
		}, async.DetachAfter(time.Second))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Zero(t, ran.Load())
		close(gate)
		allSlotsAreThere(t, ctx, 2)
		require.EqualValues(t, 3, ran.Load(), "what queues under WithoutCancel goes on at the root")
		return nil
	})
}

// TestADaemonThatQueuesIsDismissed: nothing will ever give it a slot, if the
// slots are held by daemons that are stubborn.
func TestADaemonThatQueuesIsDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return ctx.Err()
			}, async.Daemon())
			for range 3 {
				async.Go(ctx, func(context.Context) error { t.Error("ran"); return nil }, async.Daemon())
			}
			return nil
		}, async.Limit(1)))
		tookAbout(t, time.Second, start)
	})
}

func TestACancelledScopeSkipsWhatQueuesInTheScopesInsideIt(t *testing.T) {
	for _, inner := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(inner), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := async.Scope(asynctest.Context(t), func(outer context.Context) error {
					async.Go(outer, func(ctx context.Context) error {
						return async.Scope(ctx, func(ctx context.Context) error {
							for range 10 {
								async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) })
								async.Race(ctx, func(ctx context.Context) (int, error) { time.Sleep(time.Second); return 1, ctx.Err() }, answer)
							}
							return nil
						}, async.Limit(inner))
					})
					time.Sleep(time.Minute)
					return errLimitWhy
				}, async.Limit(2))
				require.ErrorIs(t, err, errLimitWhy)
				require.Less(t, time.Since(start), time.Hour)
			})
		})
	}
}
