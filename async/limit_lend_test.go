package async_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

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
