package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestWhoIsToldOfAFailure: an error that was given to nobody fails the scope
// at its end; what somebody was given or told does not.
func TestWhoIsToldOfAFailure(t *testing.T) {
	own := errors.New("own")
	fails := func(ctx context.Context, opts ...async.TaskOption) *async.Future[int] {
		return async.Execute(ctx, stubborn(time.Minute, 0, own), opts...)
	}
	for name, test := range map[string]struct {
		body  func(t *testing.T, ctx context.Context)
		fails bool
	}{
		"nobody awaits":       {func(_ *testing.T, ctx context.Context) { fails(ctx) }, true},
		"Start, nobody":       {func(_ *testing.T, ctx context.Context) { async.Start(ctx, func(context.Context) error { return own }) }, true},
		"Done claims nothing": {func(_ *testing.T, ctx context.Context) { <-fails(ctx).Done() }, true},
		"State claims nothing": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			require.Equal(t, async.Done, f.State())
		}, true},
		"Await": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Await(ctx, 0)
			require.ErrorIs(t, err, own)
		}, false},
		"Await after it settled": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			_, err := f.Await(ctx, -1)
			require.ErrorIs(t, err, own)
		}, false},
		"Wait": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Wait(ctx)
			require.ErrorIs(t, err, own)
		}, false},
		"a Wait that gave up": {func(t *testing.T, ctx context.Context) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := fails(ctx).Wait(brief)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, true},
		"AwaitAll": {func(t *testing.T, ctx context.Context) {
			for _, r := range async.AwaitAll(ctx, 0, fails(ctx), fails(ctx)) {
				require.ErrorIs(t, r.Err, own)
			}
		}, false},
		"an AwaitAll that expired": {func(t *testing.T, ctx context.Context) {
			for _, r := range async.AwaitAll(ctx, time.Second, fails(ctx), fails(ctx)) {
				require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			}
		}, false},
		"Result": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			_, err, ok := f.Result()
			require.True(t, ok)
			require.ErrorIs(t, err, own)
		}, false},
		"a Result that came too early": {func(t *testing.T, ctx context.Context) {
			_, err, ok := fails(ctx).Result()
			require.False(t, ok)
			require.NoError(t, err)
		}, true},
		"an Await that expired": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false},
		"an Await that has expired": {func(t *testing.T, ctx context.Context) {
			_, err := fails(ctx).Await(ctx, -1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false},
		"an Await whose ctx ended": {func(t *testing.T, ctx context.Context) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := fails(ctx).Await(brief, 0)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, false},
		"Cancel": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			require.True(t, f.Cancel(errors.New("no longer needed")))
		}, false},
		"Cancel after it failed": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			<-f.Done()
			require.False(t, f.Cancel(nil))
		}, false},
		"somebody in another task": {func(t *testing.T, ctx context.Context) {
			f := fails(ctx)
			async.Go(ctx, func(ctx context.Context) error {
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, own)
				return nil
			})
		}, false},
		"a task that is told by its derived context": {func(_ *testing.T, ctx context.Context) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			fails(brief)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					test.body(t, ctx)
					require.NoError(t, ctx.Err(), "a future's failure cancels nobody")
					return nil
				})
				if test.fails {
					require.ErrorIs(t, err, own)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// TestPanicsAndGoexitsAreTooLoudToBeToldAsATimeout: only being given them will
// do.
func TestPanicsAndGoexitsAreTooLoudToBeToldAsATimeout(t *testing.T) {
	boom := errors.New("boom")
	raise := func(ctx context.Context) (int, error) { untilStopped(ctx); panic(boom) }
	goexit := func(ctx context.Context) (int, error) { untilStopped(ctx); runtime.Goexit(); return 0, nil }
	for name, tell := range map[string]func(t *testing.T, ctx context.Context, f *async.Future[int]){
		"told by an Await": func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		},
		"told by AwaitAll": func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			require.ErrorIs(t, async.AwaitAll(ctx, time.Second, f)[0].Err, context.DeadlineExceeded)
		},
		"told by Cancel": func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			require.True(t, f.Cancel(errors.New("stop")))
		},
	} {
		t.Run("panic/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := panicFrom(func() {
					_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						tell(t, ctx, async.Execute(ctx, raise))
						return nil
					})
				})
				pe, ok := p.(*async.PanicError)
				require.True(t, ok, "%v", p)
				require.Equal(t, boom, pe.Value)
				require.ErrorIs(t, pe, boom)
			})
		})
		t.Run("Goexit/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.ErrorIs(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					tell(t, ctx, async.Execute(ctx, goexit))
					return nil
				}), async.ErrGoexit)
			})
		})
		t.Run("given afterwards/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					f, g := async.Execute(ctx, raise), async.Execute(ctx, goexit)
					tell(t, ctx, f)
					tell(t, ctx, g)
					_, err := f.Wait(ctx)
					require.ErrorIs(t, err, boom)
					_, err = g.Wait(ctx)
					require.ErrorIs(t, err, async.ErrGoexit)
					return nil
				}))
			})
		})
	}
}

// TestAFailureIsToldToAWaiterOrToTheScopeNotToBoth: the waiter is outside, so
// the scope may end before it has been woken.
func TestAFailureIsToldToAWaiterOrToTheScopeNotToBoth(t *testing.T) {
	root := asynctest.Context(t)
	own := errors.New("own")
	for range 1000 {
		var waiter sync.WaitGroup
		var told error
		scope := async.Scope(root, func(ctx context.Context) error {
			fail := make(chan struct{})
			f := async.Execute(ctx, func(context.Context) (int, error) { <-fail; return 0, own })
			waiter.Go(func() { _, told = f.Wait(root) })
			close(fail)
			return nil
		})
		waiter.Wait()
		require.Equal(t, own, told)
		if scope != nil { // the waiter came after the scope's end
			require.ErrorIs(t, scope, own)
		}
	}
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			root := asynctest.Context(t)
			var told error
			require.NoError(t, async.Scope(root, func(ctx context.Context) error {
				f := async.Execute(ctx, stubborn(time.Second, 0, own))
				for range 20 {
					go func() { _, _ = f.Wait(root) }()
				}
				go func() { _, told = f.Wait(root) }()
				return nil
			}), "somebody was waiting, so somebody is told")
			synctest.Wait()
			require.Equal(t, own, told)
		})
	}
}

func TestUnclaimedFailuresAreListedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for i := range n {
				async.Execute(ctx, stubborn(time.Duration(i)*time.Second, 0, error(&awaitError{i})))
			}
			claimed := async.Execute(ctx, stubborn(time.Second/2, 0, errors.New("claimed")))
			_, err := claimed.Await(ctx, 0)
			require.Error(t, err)
			return nil
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Len(t, list.Errors, 32)
		require.Equal(t, n-32, list.Dropped)
		for i, err := range list.Errors {
			require.Equal(t, &awaitError{i}, err)
		}
	})
}

// TestTheRootIsToldOfAFailureThatNobodyWasGiven: when the future of a root
// task is collected.
func TestTheRootIsToldOfAFailureThatNobodyWasGiven(t *testing.T) {
	own := errors.New("own")
	for name, test := range map[string]struct {
		use  func(ctx context.Context, f *async.Future[int])
		told bool
	}{
		"nobody": {func(context.Context, *async.Future[int]) {}, true},
		"given":  {func(ctx context.Context, f *async.Future[int]) { _, _ = f.Await(ctx, 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, check := asynctest.Root(t.Context())
			func() {
				f := async.Execute(ctx, func(context.Context) (int, error) { return 0, own })
				<-f.Done()
				test.use(ctx, f)
			}()
			var err error
			for i := 0; i < 100 && err == nil && (test.told || i < 3); i++ {
				runtime.GC()
				err = check()
			}
			if test.told {
				require.ErrorIs(t, err, own)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
