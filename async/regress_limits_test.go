package async_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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

func TestDetachAfterNeedsNoSlotToReturn(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			start := time.Now()
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				return nil
			}, async.Timeout(time.Second), async.DetachAfter(time.Second))
			var left *async.StragglerError
			require.ErrorAs(t, err, &left)
			tookAbout(t, 2*time.Second, start)
			time.Sleep(2 * time.Hour)
			return nil
		})
		return nil
	})
}

func TestADiscardHookMayAwaitATaskOfItsLimit(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		f := async.Execute(ctx, obedient(0, 1, nil), async.OnDiscard(func(int) {
			_, err := async.Execute(ctx, answer).Await(ctx, time.Minute)
			require.NoError(t, err)
		}))
		_, err := f.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return nil
	})
}

func TestAnExitHookDoesNotHoldUpItsTaskUnderALimit(t *testing.T) {
	for name, hooks := range map[string]int{"none": 0, "one": 1} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				start := time.Now()
				f := async.Execute(ctx, func(ctx context.Context) (int, error) {
					for range hooks {
						async.OnExit(ctx, func(context.Context, error) error { return nil })
					}
					return 1, nil
				})
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				_, err := f.Wait(ctx)
				tookAbout(t, 0, start)
				return err
			})
		})
	}
}

// TestADaemonStartedLateIsCancelledToo: by a daemon that has been told to go,
// and by an exit hook.
func TestADaemonStartedLateIsCancelledToo(t *testing.T) {
	serve := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, start := range map[string]func(ctx context.Context){
		"in its place": func(ctx context.Context) {
			async.Go(ctx, func(own context.Context) error {
				<-own.Done()
				async.Go(ctx, serve, async.Daemon())
				return nil
			}, async.Daemon())
		},
		"by itself": func(ctx context.Context) {
			async.Go(ctx, func(own context.Context) error {
				<-own.Done()
				async.Go(own, serve, async.Daemon())
				return nil
			}, async.Daemon())
		},
		"by an exit hook": func(ctx context.Context) {
			async.Go(ctx, serve, async.Daemon())
			async.OnExit(ctx, func(context.Context, error) error {
				async.Go(ctx, serve, async.Daemon())
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				outer, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				require.NoError(t, async.Scope(outer, func(ctx context.Context) error {
					start(ctx)
					return nil
				}))
				tookAbout(t, 0, begin)
			})
		})
	}
}

// TestDaemonsAreDismissedWhileOthersAreStarted is for the race detector.
func TestDaemonsAreDismissedWhileOthersAreStarted(t *testing.T) {
	ctx := asynctest.Context(t)
	for i := range min(6000, 60_000/raceFactor) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				for range i % 100 {
					runtime.Gosched()
				}
				for range 3 {
					async.Go(ctx, nothing, async.Daemon())
				}
				return nil
			}, async.Daemon())
			for range i % 37 {
				runtime.Gosched()
			}
			return nil
		}, async.Limit(100)))
	}
}
