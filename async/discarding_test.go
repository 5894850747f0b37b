package async_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// ledger is values that were opened, and how often each was closed.
type ledger struct {
	mu     sync.Mutex
	opened int
	closed map[int]int
	given  map[int]bool
}

func (l *ledger) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened++
	return l.opened
}

func (l *ledger) close(v int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		l.closed = map[int]int{}
	}
	l.closed[v]++
}

func (l *ledger) give(vs ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given == nil {
		l.given = map[int]bool{}
	}
	for _, v := range vs {
		if v != 0 {
			l.given[v] = true
		}
	}
}

// check that every value was given or closed, and none both, nor closed twice.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for v := 1; v <= l.opened; v++ {
		n := l.closed[v]
		if l.given[v] {
			n++
		}
		require.Equal(t, 1, n, "value %d of %d: given %v, closed %d times", v, l.opened, l.given[v], l.closed[v])
	}
	require.Zero(t, l.closed[0], "nothing was closed that was not opened")
}

// dials are tasks that open a value after some seconds and then do something.
var dials = map[string]func(ctx context.Context, l *ledger, after time.Duration) (int, error){
	"well": func(_ context.Context, l *ledger, d time.Duration) (int, error) { time.Sleep(d); return l.open(), nil },
	"heeds ctx": func(ctx context.Context, l *ledger, d time.Duration) (int, error) {
		if err := async.Sleep(ctx, d); err != nil {
			return 0, err
		}
		return l.open(), nil
	},
	"beside a child's echo": func(ctx context.Context, l *ledger, d time.Duration) (int, error) {
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, d) })
		time.Sleep(d)
		return l.open(), nil
	},
	"beside a child's failure": func(ctx context.Context, l *ledger, d time.Duration) (int, error) {
		async.Go(ctx, func(context.Context) error { time.Sleep(d); return errItem })
		time.Sleep(d)
		return l.open(), nil
	},
	"fails": func(_ context.Context, _ *ledger, d time.Duration) (int, error) { time.Sleep(d); return 0, errItem },
}

// waits are what becomes of the future of a choice.
var waits = map[string]func(ctx context.Context, l *ledger, f func() ([]int, error), expire func(time.Duration), cancel func()){
	"awaited": func(_ context.Context, l *ledger, f func() ([]int, error), _ func(time.Duration), _ func()) {
		vs, _ := f()
		l.give(vs...)
	},
	"awaited late": func(_ context.Context, l *ledger, f func() ([]int, error), _ func(time.Duration), _ func()) {
		time.Sleep(time.Minute)
		vs, _ := f()
		l.give(vs...)
	},
	"never awaited": func(context.Context, *ledger, func() ([]int, error), func(time.Duration), func()) {},
	"expired": func(_ context.Context, _ *ledger, _ func() ([]int, error), expire func(time.Duration), _ func()) {
		expire(time.Second / 2)
	},
	"expired, asked": func(_ context.Context, l *ledger, f func() ([]int, error), expire func(time.Duration), _ func()) {
		expire(time.Second / 2)
		vs, _ := f()
		l.give(vs...)
	},
	"cancelled": func(_ context.Context, _ *ledger, _ func() ([]int, error), _ func(time.Duration), cancel func()) {
		cancel()
	},
	"decided, cancel": func(_ context.Context, _ *ledger, _ func() ([]int, error), _ func(time.Duration), cancel func()) {
		time.Sleep(time.Minute)
		cancel()
	},
}

// choices are all ways to choose. Each returns how the future is waited for.
var choices = map[string]func(ctx context.Context, tasks ...func(context.Context) (int, error)) (f func() ([]int, error), expire func(time.Duration), cancel func()){
	"Race": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Race(ctx, tasks...))
	},
	"Any": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Any(ctx, tasks...))
	},
	"Hedge": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Hedge(ctx, 300*time.Millisecond, tasks...))
	},
	"Until": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Until(ctx, func(r async.Result[int]) bool { return r.Index == 1 }, tasks...))
	},
	"nobody": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		return one(ctx, async.Until(ctx, func(async.Result[int]) bool { return false }, tasks...))
	},
	"Quorum": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		f := async.Quorum(ctx, 2, tasks...)
		return func() ([]int, error) { return f.Await(ctx, 0) }, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
	},
	"All": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		f := async.All(ctx, tasks...)
		return func() ([]int, error) { return f.Await(ctx, 0) }, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
	},
	"Settle": func(ctx context.Context, tasks ...func(context.Context) (int, error)) (func() ([]int, error), func(time.Duration), func()) {
		f := async.Settle(ctx, tasks...)
		return func() (vs []int, err error) {
			results, err := f.Await(ctx, 0)
			for _, r := range results {
				vs = append(vs, r.Value)
			}
			return vs, err
		}, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
	},
}

func one(ctx context.Context, f *async.Future[int]) (func() ([]int, error), func(time.Duration), func()) {
	return func() ([]int, error) { v, err := f.Await(ctx, 0); return []int{v}, err }, func(d time.Duration) { _, _ = f.Await(ctx, d) }, func() { f.Cancel(errCancelBoom) }
}

// TestEveryValueOfAChoiceIsGivenOrDiscarded, once, whatever the contenders do
// and whoever asks.
func TestEveryValueOfAChoiceIsGivenOrDiscarded(t *testing.T) {
	for choosing, choose := range choices {
		for first, a := range dials {
			for second, b := range dials {
				for waiting, wait := range waits {
					t.Run(fmt.Sprint(choosing, "/", first, "/", second, "/", waiting), func(t *testing.T) {
						inBubble(t, func(t *testing.T, ctx context.Context) {
							var l ledger
							_ = panicOrError(func() error {
								return async.Scope(ctx, func(ctx context.Context) error {
									f, expire, cancel := choose(ctx, async.Discarding(l.close,
										func(ctx context.Context) (int, error) { return a(ctx, &l, time.Second) },
										func(ctx context.Context) (int, error) { return b(ctx, &l, 2*time.Second) },
										func(ctx context.Context) (int, error) { return a(ctx, &l, 3*time.Second) },
									)...)
									wait(ctx, &l, f, expire, cancel)
									return nil
								})
							})
							l.check(t)
						})
					})
				}
			}
		}
	}
}

// TestTheInnerHookCounts where there are two.
func TestTheInnerHookCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner, outer ledger
		dial := func(d time.Duration) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { time.Sleep(d); return inner.open(), nil }
		}
		tasks := async.Discarding(outer.close, async.Discarding(inner.close, dial(time.Second), dial(2*time.Second))...)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			v, err := async.Race(ctx, tasks...).Await(ctx, 0)
			inner.give(v)
			return err
		}))
		inner.check(t)
		outer.check(t)
	})
}

// TestADiscardHookThatFailsHoldsUpNoOther: every value has its turn, and the
// scope is told.
func TestADiscardHookThatFailsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var l ledger
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.All(ctx, async.Discarding(func(v int) {
				l.close(v)
				if v%2 == 0 {
					runtime.Goexit()
				}
				panic(errPlanted)
			}, slicesOf(4, func(context.Context) (int, error) { return l.open(), nil })...)...)
			return nil
		})
		require.ErrorIs(t, err, errPlanted)
		require.ErrorIs(t, err, async.ErrGoexit)
		l.check(t)
	})
}

func slicesOf[T any](n int, v T) (vs []T) {
	for range n {
		vs = append(vs, v)
	}
	return vs
}
