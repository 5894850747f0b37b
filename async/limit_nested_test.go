package async_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
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
