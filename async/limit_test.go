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

func TestQueuedTasksNeedNoGoroutine(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		blocker := async.Execute(ctx, stubborn(time.Second, 0, nil))
		before := runtime.NumGoroutine()
		for range 1000 {
			async.Go(ctx, nothing)
		}
		require.Less(t, goroutines(before+99)-before, 100)
		_, err := blocker.Await(ctx, 0)
		return err
	})
}

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

// errLimitWhy is the cause in the tests of queued tasks.
var errLimitWhy = errors.New("no longer needed")

func TestAQueuedTaskThatIsCancelledIsSettledAndNeverRuns(t *testing.T) {
	for name, test := range map[string]struct {
		cancel func(t *testing.T, ctx context.Context, f *async.Future[int], stop context.CancelCauseFunc)
		want   error
	}{
		"by Cancel": {func(t *testing.T, _ context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			require.True(t, f.Cancel(errLimitWhy))
		}, errLimitWhy},
		"by its derived context": {func(_ *testing.T, _ context.Context, _ *async.Future[int], stop context.CancelCauseFunc) {
			stop(errLimitWhy)
			synctest.Wait()
		}, errLimitWhy},
		"by the expiry of its Await": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, context.DeadlineExceeded},
		"by an Await that has expired": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			_, err := f.Await(ctx, -1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, context.DeadlineExceeded},
		"by AwaitAll": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			require.ErrorIs(t, async.AwaitAll(ctx, time.Second, f)[0].Err, context.DeadlineExceeded)
		}, context.DeadlineExceeded},
		"by the end of its waiter's context": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errLimitWhy)
			_, err := f.Await(ctx, 0)
			require.ErrorIs(t, err, errLimitWhy)
		}, errLimitWhy},
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				derived, stop := context.WithCancelCause(ctx)
				defer stop(nil)
				ran := false
				f := async.Execute(derived, func(context.Context) (int, error) { ran = true; return 1, nil },
					async.OnAbort(func(context.Context, error) error { ran = true; return nil }),
					async.OnDiscard(func(int) { ran = true }))
				require.Equal(t, async.Queued, f.State())
				start := time.Now()
				test.cancel(t, ctx, f, stop)
				require.Less(t, time.Since(start), time.Minute)
				require.Equal(t, async.Done, f.State(), "settled without waiting for a slot")
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, test.want)
				time.Sleep(2 * time.Hour)
				require.False(t, ran)
				return nil
			})
		})
	}
}

func TestQueuedTasksOfACancelledScopeAreSettledAndNeverRun(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		cancel func(ctx context.Context, stop context.CancelCauseFunc) error // in the body, after everything was started
		match  []error
	}{
		"by its body":   {func(context.Context, context.CancelCauseFunc) error { return boom }, []error{boom}},
		"by the parent": {func(_ context.Context, stop context.CancelCauseFunc) error { stop(errLimitWhy); return nil }, []error{context.Canceled, errLimitWhy}},
		"by a sibling": {func(context.Context, context.CancelCauseFunc) error {
			time.Sleep(time.Hour) // the first task fails
			return nil
		}, []error{boom}},
		"by its timeout": {func(ctx context.Context, _ context.CancelCauseFunc) error { <-ctx.Done(); return nil }, []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancelCause(asynctest.Context(t))
				defer stop(nil)
				ran := false
				run := func(context.Context) (int, error) { ran = true; return 1, nil }
				hook := async.OnAbort(func(context.Context, error) error { ran = true; return nil })
				var f, awaited *async.Future[int]
				err := async.Scope(parent, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error {
						time.Sleep(10 * time.Minute)
						if name == "by a sibling" {
							return boom
						}
						return nil
					})
					f = async.Execute(ctx, run, hook)
					awaited = async.Execute(ctx, run, hook)
					async.Go(ctx, func(context.Context) error { ran = true; return nil }, hook)
					go func() { _, _ = awaited.Wait(context.WithoutCancel(ctx)) }()
					return test.cancel(ctx, stop)
				}, async.Limit(1), async.Timeout(5*time.Minute+time.Hour*map[bool]time.Duration{true: 0, false: 1}[name == "by its timeout"]))
				require.Error(t, err, "something was skipped")
				for _, want := range test.match {
					require.ErrorIs(t, err, want)
					for _, f := range []*async.Future[int]{f, awaited} {
						_, ferr, ok := f.Result()
						require.True(t, ok)
						require.ErrorIs(t, ferr, want)
					}
				}
				require.False(t, ran)
			})
		})
	}
}

// TestACancelledScopeThatSkippedAQueuedTaskDoesNotReturnNil: nothing but the
// skipped task tells of the cancellation.
func TestACancelledScopeThatSkippedAQueuedTaskDoesNotReturnNil(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context){
		"Go":      func(ctx context.Context) { async.Go(ctx, nothing) },
		"Execute": func(ctx context.Context) { async.Execute(ctx, answer) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancelCause(asynctest.Context(t))
				err := async.Scope(parent, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
					start(ctx)
					stop(errLimitWhy)
					return nil
				}, async.Limit(1))
				require.ErrorIs(t, err, errLimitWhy)
				require.ErrorIs(t, err, context.Canceled)
			})
		})
	}
}

func TestALateStartInACancelledLimitedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithCancelCause(asynctest.Context(t))
		products := make(chan int)
		queuedRan := false
		err := async.Scope(parent, func(ctx context.Context) error {
			stop(errLimitWhy)
			synctest.Wait()
			// A slot is free, so it does not queue: a producer is never skipped.
			async.Go(ctx, func(ctx context.Context) error {
				defer close(products)
				require.ErrorIs(t, context.Cause(ctx), errLimitWhy)
				time.Sleep(time.Minute)
				return nil
			})
			f := async.Execute(ctx, func(context.Context) (int, error) { queuedRan = true; return 0, nil },
				async.OnAbort(func(context.Context, error) error { queuedRan = true; return nil }))
			_, err, settled := f.Result()
			require.True(t, settled, "it would queue, so it is settled")
			require.ErrorIs(t, err, errLimitWhy)
			<-products
			return nil
		}, async.Limit(1))
		require.ErrorIs(t, err, errLimitWhy)
		require.False(t, queuedRan)
	})
}

func TestCancellingQueuedTasksFreesNothingThatIsNotTheirs(t *testing.T) {
	limitedScope(t, 2, func(t *testing.T, ctx context.Context) error {
		var c runCount
		work := func(context.Context) (int, error) {
			c.enter()
			defer c.out()
			time.Sleep(time.Second)
			return 1, nil
		}
		var all []*async.Future[int]
		for range 50 {
			all = append(all, async.Execute(ctx, work))
		}
		for i := 3; i < len(all); i += 3 {
			all[i].Cancel(errLimitWhy)
		}
		for i, r := range async.AwaitAll(ctx, 0, all...) {
			if i >= 3 && i%3 == 0 {
				require.ErrorIs(t, r.Err, errLimitWhy)
			} else {
				require.NoError(t, r.Err)
			}
		}
		require.EqualValues(t, 2, c.most.Load())
		require.EqualValues(t, 50-16, c.entered.Load())
		return nil
	})
}

func TestQueuedTasksStartDeepestFirstThenFirstComeFirst(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		var mu sync.Mutex
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return nil
			}
		}
		queued := make(chan struct{})
		async.Go(ctx, func(ctx context.Context) error {
			async.Go(ctx, note("child 1"))
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, note("in scope 1"))
				<-queued // a wait of our own: no slot is lent
				async.Go(ctx, note("in scope 2"))
				return nil
			})
			async.Go(ctx, note("child 3"))
			return err
		})
		async.Go(ctx, note("top 1"))
		async.Start(ctx, note("top 2"))
		synctest.Wait()
		async.Go(ctx, note("top 3"))
		close(queued)
		async.OnExit(ctx, func(context.Context, error) error {
			require.Equal(t, []string{"in scope 1", "in scope 2", "child 1", "child 3", "top 1", "top 2", "top 3"}, order)
			return nil
		})
		return nil
	})
}

// TestASettlingTaskHandsItsSlotToWhoWaitedForIt: and starts nothing new before.
func TestASettlingTaskHandsItsSlotToWhoWaitedForIt(t *testing.T) {
	for name, await := range map[string]func(context.Context, *async.Future[int]) error{
		"Await": func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, 0); return err },
		"Await in a Scope": func(ctx context.Context, f *async.Future[int]) error {
			return async.Scope(ctx, func(ctx context.Context) error { _, err := f.Await(ctx, time.Hour); return err })
		},
		"Wait":     func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(ctx); return err },
		"AwaitAll": func(ctx context.Context, f *async.Future[int]) error { return async.AwaitAll(ctx, 0, f)[0].Err },
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
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
			})
		})
	}
}

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
					require.Equal(t, async.Done, f.State())
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
		require.Equal(t, async.Queued, f.State())
		close(open)
		_, err := f.Await(ctx, 0)
		return err
	})
}

func TestTheTimeoutOfATaskDoesNotRunWhileItQueues(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		start := time.Now()
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, start.Add(time.Hour+time.Minute), deadline)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, async.Timeout(time.Minute))
		_, err := f.Await(ctx, 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, time.Hour+time.Minute, start)
		return nil
	})
}

func TestTheLimitOfAnAwaitRunsWhileItsTaskQueues(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		start := time.Now()
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
		f := async.Execute(ctx, obedient(time.Hour, 1, nil))
		_, err := f.Await(ctx, 2*time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, 2*time.Minute, start)
		_, err = f.Await(ctx, 0)
		return err
	})
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

func TestALimitBelowOnePanics(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt} {
		require.NotNil(t, panicFrom(func() { async.Limit(n) }), "Limit(%d)", n)
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
