package async_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// endless yields 0, 1, 2 and so on until it is told to stop.
func endless(yield func(int) bool) {
	for i := 0; yield(i); i++ {
	}
}

// TestAnEndlessSequenceEndsWithItsContext, and says why, however its context is
// cancelled and whatever its items were doing just then.
func TestAnEndlessSequenceEndsWithItsContext(t *testing.T) {
	touch := func(ctx context.Context, i int) (int, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Microsecond):
		}
		return i, nil
	}
	loops := map[string]func(ctx context.Context, stop func()) error{
		"ForEach": func(ctx context.Context, stop func()) error {
			return async.ForEach(ctx, endless, func(ctx context.Context, i int) error {
				if i == 5 {
					go stop()
				}
				_, err := touch(ctx, i)
				return err
			}, async.Limit(2))
		},
		"Map": func(ctx context.Context, stop func()) (last error) {
			for i, err := range async.Map(ctx, endless, touch, async.Limit(2)) {
				if i == 5 {
					go stop()
				}
				last = err
			}
			return last
		},
		"AsCompleted": func(ctx context.Context, stop func()) (last error) {
			var tasks iter.Seq[func(context.Context) (int, error)] = func(yield func(func(context.Context) (int, error)) bool) {
				for i := 0; yield(func(ctx context.Context) (int, error) { return touch(ctx, i) }); i++ {
				}
			}
			for i, r := range async.AsCompleted(ctx, tasks, async.Limit(2)) {
				if i == 5 {
					go stop()
				}
				last = r.Err
			}
			return last
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			for range fewer(5000, 100) {
				ctx, stop := context.WithCancelCause(t.Context())
				require.ErrorIs(t, loop(ctx, func() { stop(errCancelWhy) }), errCancelWhy)
				stop(nil)

				err := async.Scope(t.Context(), func(ctx context.Context) error {
					return loop(ctx, func() { async.Go(ctx, func(context.Context) error { return errCancelWhy }) })
				})
				require.ErrorIs(t, err, errCancelWhy)
			}
		})
	}
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

// TestASequenceThatPanicsOrExits joins what was begun, and goes on as it was.
func TestASequenceThatPanicsOrExits(t *testing.T) {
	var running atomic.Int32
	item := func(ctx context.Context, i int) (int, error) {
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		time.Sleep(time.Second)
		return i, nil
	}
	bad := func(end func()) iter.Seq[int] {
		return func(yield func(int) bool) {
			if yield(0) && yield(1) {
				end()
			}
		}
	}
	loops := map[string]func(ctx context.Context, items iter.Seq[int]) error{
		"ForEach": func(ctx context.Context, items iter.Seq[int]) error {
			return async.ForEach(ctx, items, func(ctx context.Context, i int) error { _, err := item(ctx, i); return err }, async.Limit(3))
		},
		"Map": func(ctx context.Context, items iter.Seq[int]) error {
			for range async.Map(ctx, items, item, async.Limit(3)) {
			}
			return nil
		},
		"AsCompleted": func(ctx context.Context, items iter.Seq[int]) error {
			tasks := func(yield func(func(context.Context) (int, error)) bool) {
				for i := range items {
					if !yield(func(ctx context.Context) (int, error) { return item(ctx, i) }) {
						return
					}
				}
			}
			for range async.AsCompleted(ctx, tasks, async.Limit(3)) {
			}
			return nil
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.ErrorIs(t, panicOrError(func() error { return loop(ctx, bad(plantedPanic)) }), errPlanted)
				require.Zero(t, running.Load(), "joined")

				came := make(chan bool, 1)
				go func() {
					back := false
					defer func() { came <- back }()
					_ = loop(ctx, bad(runtime.Goexit))
					back = true
				}()
				require.False(t, <-came, "it went on to exit")
				require.Zero(t, running.Load(), "joined")
			})
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
