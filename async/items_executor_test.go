package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/require"
)

// Pools of a few places. A task has its place until it has returned.
type seats chan struct{}

func (p seats) run(task func()) {
	go func() {
		defer func() { <-p }()
		task()
	}()
}

func (p seats) tryExecute(task func()) bool {
	select {
	case p <- struct{}{}:
		p.run(task)
		return true
	default:
		return false
	}
}

// blockingPool blocks until there is a place.
func blockingPool(n int) async.Executor {
	p := make(seats, n)
	return pool(func(task func()) error {
		p <- struct{}{}
		p.run(task)
		return nil
	})
}

// askedPool can say that it is full, but otherwise blocks.
func askedPool(n int) async.Executor {
	p := make(seats, n)
	return tryPool{func(task func()) error {
		p <- struct{}{}
		p.run(task)
		return nil
	}, p.tryExecute}
}

// fullPool refuses what it has no place for.
func fullPool(n int) async.Executor {
	p := make(seats, n)
	return pool(func(task func()) error {
		if !p.tryExecute(task) {
			return errFull
		}
		return nil
	})
}

// queueingPool has n goroutines and a queue.
func queueingPool(n int) async.Executor {
	p := make(seats, n)
	return pool(func(task func()) error {
		go func() {
			p <- struct{}{}
			p.run(task)
		}()
		return nil
	})
}

var smallPools = map[string]func(n int) async.Executor{
	"blocking": blockingPool, "asked": askedPool, "refusing": fullPool, "queueing": queueingPool,
}

// leavings are what an item may leave behind when it has returned.
var leavings = map[string]func(ctx context.Context) error{
	"nothing":            func(context.Context) error { return nil },
	"its context's Done": func(ctx context.Context) error { _ = ctx.Done(); return nil },
	"an exit hook": func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error { return nil })
		return nil
	},
	"a hook that waits": func(ctx context.Context) error {
		async.OnExit(ctx, func(ctx context.Context, _ error) error { return async.Sleep(ctx, time.Second) })
		return nil
	},
	"a promise":           func(ctx context.Context) error { async.NewPromise[int](ctx); return nil },
	"a panic":             func(context.Context) error { panic(errItem) },
	"Goexit":              func(context.Context) error { runtime.Goexit(); return nil },
	"Goexit and its Done": func(ctx context.Context) error { _ = ctx.Done(); runtime.Goexit(); return nil },
	"an error":            func(context.Context) error { return errItem },
	"a task elsewhere": func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }, async.On(pool(func(task func()) error { go task(); return nil })))
		return nil
	},
	"a task on the pool": func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
		return nil
	},
	"a task and Goexit": func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }, async.On(pool(func(task func()) error { go task(); return nil })))
		runtime.Goexit()
		return nil
	},
}

// manyItems are the ways to work on 20 items. They return the items' errors.
var manyItems = map[string]func(ctx context.Context, f func(context.Context) error, opts ...async.ForkOption) []error{
	"ForkJoin": func(ctx context.Context, f func(context.Context) error, opts ...async.ForkOption) (errs []error) {
		results, err := async.ForkJoin(ctx, upTo(20), func(ctx context.Context, i int) (int, error) { return i, f(ctx) }, opts...).Await(ctx, 0)
		for _, r := range results {
			errs = append(errs, r.Err)
		}
		if err != nil {
			errs = append(errs, err)
		}
		return errs
	},
	"ForEach": func(ctx context.Context, f func(context.Context) error, opts ...async.ForkOption) []error {
		ended := make([]error, 20)
		err := panicOrError(func() error {
			return async.ForEach(ctx, slices.Values(upTo(20)), func(ctx context.Context, i int) error {
				ended[i] = errors.New("began") // and says how it ended, if it returns
				ended[i] = f(ctx)
				return nil
			}, opts...)
		})
		if err != nil && !errors.Is(err, async.ErrGoexit) && !errors.Is(err, errItem) {
			return append(ended, err)
		}
		return ended
	},
	"Map": func(ctx context.Context, f func(context.Context) error, opts ...async.ForkOption) (errs []error) {
		for _, err := range async.Map(ctx, slices.Values(upTo(20)), func(ctx context.Context, i int) (int, error) { return i, f(ctx) }, opts...) {
			errs = append(errs, err)
		}
		return errs
	},
	"AsCompleted": func(ctx context.Context, f func(context.Context) error, opts ...async.ForkOption) (errs []error) {
		tasks := slices.Repeat([]func(context.Context) (int, error){func(ctx context.Context) (int, error) { return 0, f(ctx) }}, 20)
		for _, r := range async.AsCompleted(ctx, slices.Values(tasks), opts...) {
			errs = append(errs, r.Err)
		}
		return errs
	},
}

// TestItemsNeverWaitForAPlaceThatTheyHold: with a limit of as many items as a
// pool has places every item has its turn, whatever the others have left.
func TestItemsNeverWaitForAPlaceThatTheyHold(t *testing.T) {
	for name, pool := range smallPools {
		for left, leave := range leavings {
			if left == "a task on the pool" && name != "queueing" {
				continue // the item itself would wait for a place
			}
			for what, items := range manyItems {
				for _, limited := range []int{0, 1, 3} {
					t.Run(fmt.Sprint(name, "/", left, "/", what, "/", limited), func(t *testing.T) {
						inBubble(t, func(t *testing.T, ctx context.Context) {
							opts := []async.ScopeOption{async.On(pool(3)), async.Timeout(time.Hour)}
							if limited > 0 {
								opts = append(opts, async.Limit(limited))
							}
							var running, most, begun atomic.Int32
							_ = async.Scope(ctx, func(ctx context.Context) error {
								errs := items(ctx, func(ctx context.Context) error {
									most.Store(max(most.Load(), running.Add(1)))
									defer running.Add(-1)
									begun.Add(1)
									time.Sleep(time.Second)
									return leave(ctx)
								}, async.Limit(3))
								for _, err := range errs {
									require.NotErrorIs(t, err, context.DeadlineExceeded)
								}
								return nil
							}, opts...)
							require.LessOrEqual(t, most.Load(), int32(3))
							switch {
							case what == "ForEach" && left == "a panic": // stops the rest
							case name == "refusing" && (limited > 0 || strings.Contains(left, "Goexit")): // needs another place before it has given up its own
							default:
								require.EqualValues(t, 20, begun.Load())
							}
						})
					})
				}
			}
		}
	}
}

func TestAnItemsErrorIsNotLostWhenTheRestIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{0, 1}, func(ctx context.Context, i int) (int, error) {
				if i == 0 {
					return 0, errPlanted
				}
				<-ctx.Done()
				return 0, ctx.Err()
			})
			time.Sleep(time.Second)
			return io.ErrNoProgress
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, []error{io.ErrNoProgress, errPlanted}, failuresOf(list))
	})
}
