package async_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestJoinWaitsUntilTheEnd(t *testing.T) {
	for name, test := range map[string]func(ctx context.Context) (context.Context, func()){
		"its own scope's context": func(ctx context.Context) (context.Context, func()) { return ctx, func() {} },
		"a context with a limit": func(ctx context.Context) (context.Context, func()) {
			return context.WithTimeout(ctx, time.Second)
		},
		"a cancelled context": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
		"Background": func(context.Context) (context.Context, func()) { return context.Background(), func() {} },
		"that of an ended scope": func(ctx context.Context) (ended context.Context, _ func()) {
			_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
			return ended, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					start := time.Now()
					f := async.Execute(ctx, func(ctx context.Context) (int, error) {
						<-ctx.Done()
						time.Sleep(time.Hour) // it takes its time
						async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
						return 42, nil
					})
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return errContext })
					waiting, cancel := test(ctx)
					defer cancel()
					v, err := f.Join(waiting)
					require.NoError(t, err)
					require.Equal(t, 42, v)
					require.Equal(t, 2*time.Hour+time.Minute, time.Since(start))
					v, err = f.Join(waiting)
					require.NoError(t, err, "any number of times")
					require.Equal(t, 42, v)
					return nil
				})
			})
		})
	}
}

func TestJoinGivesTheErrorAndAbortsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			done, cancel := context.WithCancel(ctx)
			cancel()
			f := async.Start(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return errors.Join(errContext, ctx.Err()) })
			_, err := f.Join(done)
			require.ErrorIs(t, err, errContext)
			require.NotErrorIs(t, err, context.Canceled)
			return nil
		}), "it has been given")
	})
}

func TestAJoinThatLeadsBackIsACycle(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			var a, b *async.Future[struct{}]
			ready := make(chan struct{})
			gone, cancel := context.WithCancel(ctx)
			cancel()
			a = async.Start(ctx, func(ctx context.Context) error { <-ready; _, err := b.Join(ctx); return err }, async.Name("a"))
			b = async.Start(ctx, func(ctx context.Context) error {
				<-ready
				time.Sleep(time.Second)
				_, err := a.Join(ctx)
				return err
			}, async.Name("b"))
			close(ready)
			_, err := a.Join(gone)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			require.EqualError(t, err, "async: await cycle: b -> a -> b")
			_, err = b.Join(gone)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			return nil
		}))
	})
}

func TestJoinLendsTheSlotOfTheTaskThatWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			outer := async.Start(ctx, func(ctx context.Context) error {
				done, cancel := context.WithCancel(ctx)
				cancel()
				_, err := async.Start(ctx, func(context.Context) error { return nil }).Join(done)
				return err
			})
			_, err := outer.Join(ctx)
			return err
		}, async.Limit(1)))
	})
}

func TestWaitsOfNothingSayWhatIsWrong(t *testing.T) {
	var missing *async.Future[int]
	zero := new(async.Future[int])
	ctx := context.Background()
	for op, call := range map[string]func(f *async.Future[int]){
		"Await":     func(f *async.Future[int]) { _, _ = f.Await(ctx, 0) },
		"Wait":      func(f *async.Future[int]) { _, _ = f.Wait(ctx) },
		"Join":      func(f *async.Future[int]) { _, _ = f.Join(ctx) },
		"AwaitAll":  func(f *async.Future[int]) { async.AwaitAll(ctx, 0, async.Completed(1, nil), f) },
		"Done":      func(f *async.Future[int]) { f.Done() },
		"Result":    func(f *async.Future[int]) { _, _, _ = f.Result() },
		"Cancel":    func(f *async.Future[int]) { f.Cancel(nil) },
		"IsRunning": func(f *async.Future[int]) { f.IsRunning() },
		"State":     func(f *async.Future[int]) { f.State() },
	} {
		require.Contains(t, panicFrom(func() { call(missing) }), "async: "+op+" of a nil Future", op)
		require.Contains(t, panicFrom(func() { call(zero) }), "async: "+op+" of a zero Future", op)
	}
	f := async.Start(ctx, func(context.Context) error { return nil })
	for op, call := range map[string]func(){
		"Await": func() { _, _ = f.Await(none, 0) },
		"Wait":  func() { _, _ = f.Wait(none) },
		"Join":  func() { _, _ = f.Join(none) },
	} {
		if p := panicFrom(call); p != nil { // it may have settled, which is looked at first
			require.Contains(t, p, "nil context", op)
		}
	}
	_, _ = f.Join(ctx)
}

// That a future which had settled was cancelled by its owner counts as having
// been given its error.
func TestCancelOfASettledFutureGivesItsError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { return errContext })
			synctest.Wait()
			require.False(t, f.Cancel(errors.New("not needed any more")))
			_, err := f.Await(ctx, 0)
			require.Equal(t, errContext, err, "a later wait is given the outcome")
			return nil
		}))
		require.NotNil(t, panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(context.Context) error { panic("loud") })
				synctest.Wait()
				f.Cancel(nil)
				return nil
			})
		}), "a panic is given only by being returned")
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil })
			synctest.Wait()
			f.Cancel(nil)
			return nil
		}), async.ErrGoexit)
	})
}

// Of two that await the same task, the one with the shorter limit aborts it for
// both. What the other is told says that it was not its own limit.
func TestItIsSaidWhoseLimitAbortedATask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, joinUntilDone, async.Name("fetch"))
			async.Start(ctx, func(ctx context.Context) error {
				_, err := f.Await(ctx, 20*time.Millisecond)
				require.EqualError(t, err, "async: fetch: context deadline exceeded (limit 20ms of an Await, waited 20ms)")
				return nil
			})
			_, err := f.Await(ctx, time.Second)
			require.ErrorContains(t, err, "limit 20ms of an Await")
			return nil
		})
		err := async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Start(ctx, joinUntilDone, async.Name("fetch"), async.Timeout(time.Second)).Join(ctx)
			return err
		})
		require.ErrorContains(t, err, "(limit 1s, waited 1s)")
	})
}

func joinUntilDone(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
