package async_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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
