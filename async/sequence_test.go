package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// lazily yields 0, 1, 2 ... up to n-1 and notes how many were pulled.
func lazily(n int, pulled *int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			*pulled++
			if !yield(i) {
				return
			}
		}
	}
}

func TestForEach(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var most, running, done, pulled atomic.Int32
		sequence := func(yield func(int) bool) {
			for i := range 50 {
				if pulled.Add(1); !yield(i) {
					return
				}
			}
		}
		work := func(ctx context.Context, i int) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			require.LessOrEqual(t, pulled.Load(), done.Load()+3, "never pulled ahead of the room")
			time.Sleep(time.Duration(i%5+1) * time.Second)
			done.Add(1)
			return nil
		}
		require.NoError(t, async.ForEach(ctx, sequence, work, async.Limit(3)))
		require.EqualValues(t, 3, most.Load())
		require.EqualValues(t, 50, done.Load())

		done.Store(0)
		start := time.Now()
		require.NoError(t, async.ForEach(ctx, slices.Values(upTo(50)), func(ctx context.Context, i int) error { time.Sleep(time.Second); done.Add(1); return nil }))
		require.EqualValues(t, 50, done.Load())
		require.Equal(t, time.Second, time.Since(start), "all at once without a limit")

		require.NoError(t, async.ForEach(ctx, slices.Values([]int(nil)), work))
	})
}

func TestHowForEachFails(t *testing.T) {
	fails := func(bad ...int) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			if err := async.Sleep(ctx, time.Second); err != nil {
				return err
			}
			if slices.Contains(bad, i) {
				return fmt.Errorf("%w %d", errItem, i)
			}
			return nil
		}
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		pulled := 0
		err := async.ForEach(ctx, lazily(10, &pulled), fails(3, 6), async.Limit(2))
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Len(t, list.Errors, 2, "every item had its turn")
		require.Equal(t, 10, pulled)

		pulled = 0
		err = async.ForEach(ctx, lazily(10, &pulled), fails(3, 6), async.Limit(2), async.FailFast())
		require.Equal(t, "bad item 3", err.Error())
		require.LessOrEqual(t, pulled, 5, "no more is pulled")

		pulled = 0
		short, cancel := context.WithTimeoutCause(ctx, 2500*time.Millisecond, errCancelWhy)
		defer cancel()
		err = async.ForEach(short, lazily(10, &pulled), fails(), async.Limit(2))
		require.ErrorIs(t, err, errCancelWhy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, pulled, 7)

		told := panicOrError(func() error {
			return async.ForEach(ctx, lazily(10, &pulled), func(ctx context.Context, i int) error {
				if i == 3 {
					plantedPanic()
				}
				return async.Sleep(ctx, time.Second)
			}, async.Limit(2))
		})
		require.ErrorIs(t, told, errPlanted)

		told = panicOrError(func() error {
			return async.ForEach(ctx, func(yield func(int) bool) { yield(1); plantedPanic() }, fails(), async.Limit(2))
		})
		require.ErrorIs(t, told, errPlanted, "of the sequence")

		require.ErrorIs(t, async.ForEach(ctx, lazily(9, &pulled), func(context.Context, int) error { runtime.Goexit(); return nil }, async.Limit(2)), async.ErrGoexit)
	})
}

func TestMapYieldsInOrderAsSoonAsItCan(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		pulled, yielded := 0, 0
		var got []int
		var at []time.Duration
		for v, err := range async.Map(ctx, func(yield func(int) bool) {
			for _, n := range []int{3, 1, 2, 1, -1, 2} {
				pulled++
				require.LessOrEqual(t, pulled, yielded+2, "never pulled ahead of the room")
				if !yield(n) {
					return
				}
			}
		}, square, async.Limit(2)) {
			yielded++
			if err != nil {
				require.ErrorIs(t, err, errItem)
			}
			got = append(got, v)
			at = append(at, time.Since(start))
		}
		require.Equal(t, []int{9, 1, 4, 1, 0, 4}, got)
		s := time.Second
		require.Equal(t, []time.Duration{3 * s, 3 * s, 5 * s, 5 * s, 6 * s, 7 * s}, at)
	})
}

func TestAsCompletedYieldsInTheOrderOfCompletion(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var tasks []func(context.Context) (int, error)
		for _, n := range []int{4, 1, -3, 2} {
			tasks = append(tasks, func(ctx context.Context) (int, error) { return square(ctx, n) })
		}
		var order []int
		for i, r := range async.AsCompleted(ctx, slices.Values(append(tasks, panicking))) {
			require.Equal(t, i, r.Index)
			order = append(order, i)
			switch i {
			case 2:
				require.ErrorIs(t, r.Err, errItem)
			case 4:
				require.ErrorIs(t, r.Err, errPlanted)
			default:
				require.NoError(t, r.Err)
			}
		}
		require.Equal(t, []int{4, 1, 3, 2, 0}, order)
	})
}

func TestFailFastMap(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		pulled := 0
		var errs []error
		for _, err := range async.Map(ctx, lazily(100, &pulled), func(ctx context.Context, i int) (int, error) {
			if i == 2 {
				return 0, errItem
			}
			return 0, async.Sleep(ctx, time.Second)
		}, async.Limit(3), async.FailFast()) {
			errs = append(errs, err)
		}
		require.Equal(t, 3, pulled)
		require.Len(t, errs, 3)
		for _, err := range errs {
			require.ErrorIs(t, err, errItem)
		}
	})
}

func TestMapThatIsCutShort(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for _, endless := range []bool{true, false} {
			short, cancel := context.WithTimeoutCause(ctx, 2500*time.Millisecond, errCancelWhy)
			n := 4
			if endless {
				n = 1 << 30
			}
			pulled := 0
			var values []int
			var errs []error
			for v, err := range async.Map(short, lazily(n, &pulled), func(ctx context.Context, i int) (int, error) { return i, async.Sleep(ctx, time.Second) }, async.Limit(1)) {
				if err == nil {
					values = append(values, v)
				} else {
					errs = append(errs, err)
				}
			}
			cancel()
			require.Equal(t, []int{0, 1}, values)
			require.Len(t, errs, 2, "what was begun, and that there may have been more")
			for _, err := range errs {
				require.ErrorIs(t, err, errCancelWhy)
			}
			require.Equal(t, 3, pulled)
		}
		done, cancel := context.WithCancelCause(ctx)
		cancel(errCancelWhy)
		pulled := 0
		for _, err := range async.Map(done, lazily(5, &pulled), square) {
			require.ErrorIs(t, err, errCancelWhy)
		}
		require.Zero(t, pulled)
	})
}

// TestAForkJoinThatIsCancelledAsItEndsHasOneStory: its error is nil and every
// item has ended, or its error is the cause.
func TestAForkJoinThatIsCancelledAsItEndsHasOneStory(t *testing.T) {
	for range fewer(5000, 200) {
		ctx, stop := context.WithCancelCause(t.Context())
		_ = async.Scope(ctx, func(ctx context.Context) error {
			f := async.ForkJoin(ctx, upTo(8), func(ctx context.Context, i int) (int, error) {
				if i == 6 {
					go stop(errCancelWhy)
				}
				_ = ctx.Done()
				return i, nil
			}, async.Limit(2))
			results, err := f.Wait(context.WithoutCancel(ctx))
			for i, r := range results {
				require.Equal(t, i, r.Index)
				switch {
				case r.Err == nil:
					require.Equal(t, i, r.Value)
				default:
					require.ErrorIs(t, r.Err, errCancelWhy)
					require.ErrorIs(t, err, errCancelWhy)
				}
			}
			return nil
		})
	}
}

// TestItemsThatWaitForEachOther are all begun, as many as the limit allows.
func TestItemsThatWaitForEachOther(t *testing.T) {
	for _, limit := range []int{2, 3, 8, 64} {
		var at atomic.Int32
		gates := make([]chan struct{}, 50*limit)
		for i := range gates {
			gates[i] = make(chan struct{})
		}
		meet := func(_ context.Context, i int) (int, error) { // the last of each group of limit lets the others go
			if at.Add(1)%int32(limit) == 0 {
				close(gates[i/limit])
			}
			<-gates[i/limit]
			return i, nil
		}
		require.NoError(t, async.ForEach(t.Context(), slices.Values(upTo(len(gates))), func(ctx context.Context, i int) error { _, err := meet(ctx, i); return err }, async.Limit(limit)))
		for i := range gates {
			gates[i] = make(chan struct{})
		}
		n := 0
		for v, err := range async.Map(t.Context(), slices.Values(upTo(len(gates))), meet, async.Limit(limit)) {
			require.NoError(t, err)
			require.Equal(t, n, v)
			n++
		}
		require.Equal(t, len(gates), n)
	}
}

// TestASlowItemHoldsNobodyUp but those that come after it in a Map, for which
// there is no room.
func TestASlowItemHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		slow := func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				return i, async.Sleep(ctx, time.Hour)
			}
			return i, async.Sleep(ctx, time.Second)
		}
		start := time.Now()
		require.NoError(t, async.ForEach(ctx, slices.Values(upTo(101)), func(ctx context.Context, i int) error { _, err := slow(ctx, i); return err }, async.Limit(3)))
		require.Equal(t, time.Hour, time.Since(start))

		start = time.Now()
		pulled := 0
		for i := range async.Map(ctx, lazily(5, &pulled), slow, async.Limit(3)) {
			if i == 0 {
				require.Equal(t, 3, pulled, "two that have ended are not yielded yet")
			}
		}
		require.Equal(t, time.Hour+time.Second, time.Since(start))
	})
}

// TestItemsThatAreObservedKeepTheirSlots: with an observer a Limit around the
// items holds, too.
func TestItemsThatAreObservedKeepTheirSlots(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var running, most, told atomic.Int32
		work := func(ctx context.Context, i int) (int, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second)
			return i, nil
		}
		observer := async.ObserverFunc(func(async.Event) { told.Add(1) })
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.ForkJoin(ctx, upTo(20), work, async.Limit(4)).Await(ctx, 0)
			require.NoError(t, err)
			return async.ForEach(ctx, slices.Values(upTo(20)), func(ctx context.Context, i int) error { _, err := work(ctx, i); return err }, async.Limit(4))
		}, async.Limit(2), async.Observe(observer)))
		require.EqualValues(t, 2, most.Load())
		require.GreaterOrEqual(t, told.Load(), int32(80), "of the start and the end of every item")
	})
}

// TestAFailingItemStopsTheRest that has not been begun, of any sequence.
func TestAFailingItemStopsTheRest(t *testing.T) {
	for range fewer(1000, 50) {
		var after atomic.Int32
		err := async.ForEach(t.Context(), endless, func(ctx context.Context, i int) error {
			if ctx.Err() != nil {
				after.Add(1)
			}
			if i == 100 {
				return errItem
			}
			return nil
		}, async.Limit(4), async.FailFast())
		require.True(t, errors.Is(err, errItem), "%v", err)
		require.Less(t, after.Load(), int32(1000))
	}
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

// refused returns how many items a pool has refused.
func refused(errs []error) int {
	all := make(map[error]bool)
	for i := 0; i < len(errs); i++ {
		switch err := errs[i].(type) {
		case *async.RejectedError:
			all[err] = true
		case interface{ Unwrap() []error }:
			errs = append(errs, err.Unwrap()...)
		}
	}
	return len(all)
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
							var errs []error
							_ = async.Scope(ctx, func(ctx context.Context) error {
								errs = items(ctx, func(ctx context.Context) error {
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
							case name == "refusing": // an item has ended a moment before its place is free: the next may be refused in between
								require.EqualValues(t, 20, int(begun.Load())+refused(errs))
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
