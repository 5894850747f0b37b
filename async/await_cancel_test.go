package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAwaitUnderAContextThatEnds(t *testing.T) {
	why := errors.New("the user left")
	for name, test := range map[string]struct {
		derive func(context.Context) (context.Context, func())
		match  []error
	}{
		"cancelled": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, []error{context.Canceled}},
		"cancelled with a cause": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(why) }
		}, []error{context.Canceled, why}},
		"a deadline": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			return ctx, func() {}
		}, []error{context.DeadlineExceeded}},
		"a deadline with a cause": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, why)
			time.AfterFunc(time.Hour, cancel)
			return ctx, func() {}
		}, []error{context.DeadlineExceeded, why}},
	} {
		for _, when := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprint(name, " after ", when), func(t *testing.T) {
				awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
					start := time.Now()
					derived, end := test.derive(ctx)
					if when == 0 {
						end()
					} else {
						time.AfterFunc(when, end)
					}
					took := when
					if _, ok := derived.Deadline(); ok {
						took = time.Second
					}
					var cause, werr, cerr error
					f := async.Execute(ctx, func(ctx context.Context) (int, error) {
						untilStopped(ctx)
						cause, cerr = context.Cause(ctx), ctx.Err()
						return 7, nil
					})
					// Wait first: it leaves the task alone.
					_, werr = f.Wait(derived)
					tookAbout(t, took, start)
					for _, want := range test.match {
						require.ErrorIs(t, werr, want)
					}
					synctest.Wait()
					require.Equal(t, async.StateRunning, f.State())

					v, err := f.Await(derived, 0)
					require.Zero(t, v)
					for _, want := range test.match {
						require.ErrorIs(t, err, want)
					}
					v, err = f.Await(ctx, 0)
					require.NoError(t, err)
					require.Equal(t, 7, v)
					require.True(t, cause == context.Cause(derived), "the handler's cause is that of the waiter's ctx: %v", cause)
					require.Equal(t, context.Canceled, cerr, "its Deadline said nothing of the waiter's")
				})
			})
		}
	}
}

// TestTheCauseOfAWaitsContextReachesTheTaskAsItIs though it is what another
// wait returned that was cut short.
func TestTheCauseOfAWaitsContextReachesTheTaskAsItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(outer context.Context) error {
			var got, want error
			f := async.Execute(outer, func(ctx context.Context) (int, error) { <-ctx.Done(); got = context.Cause(ctx); return 0, nil })
			_ = async.Scope(outer, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					mine, cancel := context.WithCancelCause(ctx)
					never, _ := async.NewPromise[int](ctx)
					time.AfterFunc(time.Second, func() { cancel(errPlanted) })
					_, err := never.Await(mine, 0)
					return err
				})
				_, _ = f.Await(ctx, 0)
				want = context.Cause(ctx)
				return nil
			})
			synctest.Wait()
			require.ErrorIs(t, want, errPlanted)
			require.Same(t, want, got)
			return nil
		})
	})
}

func TestACauseThatMentionsACycleAbortsLikeAnyOther(t *testing.T) {
	for _, cause := range []error{errPlanted, fmt.Errorf("%w: a -> b", async.ErrAwaitCycle)} {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(outer context.Context) error {
				f := async.Execute(outer, obedient(0, 0, nil))
				ctx, cancel := context.WithCancelCause(outer)
				cancel(cause)
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, cause)
				require.Contains(t, []async.State{async.StateAborting, async.StateDone}, f.State())
				f.Cancel(nil)
				return nil
			})
		})
	}
}

func TestAWaiterIsToldWhenItsOwnScopeIsCancelled(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[int]) error{
		"Await":    func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, 0); return err },
		"Wait":     func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(ctx); return err },
		"AwaitAll": func(ctx context.Context, f *async.Future[int]) error { return async.AwaitAll(ctx, time.Hour, f)[0].Err },
		"derived":  func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(cycleValue(ctx)); return err },
		"derived cancel": func(ctx context.Context, f *async.Future[int]) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := f.Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				f := async.Execute(ctx, stubborn(time.Hour, 1, nil))
				start := time.Now()
				told := make([]error, 20)
				require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
					var bare sync.WaitGroup
					for i := range 10 {
						async.Go(ctx, func(ctx context.Context) error { // each its own context
							told[i] = wait(ctx, f)
							return nil
						})
						bare.Go(func() { told[10+i] = wait(ctx, f) }) // many on one
					}
					time.Sleep(time.Second)
					async.Go(ctx, func(context.Context) error { return errCancelBoom })
					bare.Wait()
					return nil
				}), errCancelBoom)
				tookAbout(t, time.Second, start)
				for _, err := range told {
					require.ErrorIs(t, err, context.Canceled)
					require.ErrorIs(t, err, errCancelBoom)
				}
				_, err := f.Wait(ctx)
				require.NoError(t, err)
			})
		})
	}
}

// TestCancelSaysWhoWasFirst although its task, woken by it, may end before it
// returns.
func TestCancelSaysWhoWasFirst(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 20_000 / raceFactor {
		begun := make(chan struct{})
		f := async.Start(ctx, func(ctx context.Context) error {
			done := ctx.Done()
			close(begun)
			<-done
			return ctx.Err()
		})
		<-begun
		require.True(t, f.Cancel(errCancelBoom))
		require.False(t, f.Cancel(errCancelWhy))
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, errCancelBoom)
	}
	for range 20_000 / raceFactor {
		derived, cancel := context.WithCancelCause(ctx)
		f := async.Start(derived, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		cancel(errCancelWhy)
		require.False(t, f.Cancel(errCancelBoom))
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, errCancelWhy)
	}
}
