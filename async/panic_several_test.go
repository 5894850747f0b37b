package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestSeveralPanicsAndErrorsAreAllKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, failed := errors.New("other"), errors.New("failed")
		told := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { panic(errPlanted) })
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); panic(other) })
				async.Go(ctx, func(context.Context) error { time.Sleep(2 * time.Second); return failed })
				return nil
			})
		})
		for _, want := range []error{errPlanted, other, failed} {
			require.ErrorIs(t, everythingIn(told), want)
		}
	})
}

func TestASecondPanicIsListedOnce(t *testing.T) {
	second := func(ctx context.Context) error { <-ctx.Done(); panic(io.ErrShortWrite) }
	for name, start := range map[string]func(ctx context.Context){
		"Go":     func(ctx context.Context) { async.Go(ctx, second) },
		"future": func(ctx context.Context) { async.Start(ctx, second) },
		"scope in a task": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { return async.Scope(ctx, second) })
		},
		"task with a task": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, second); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						start(ctx)
						async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
						return nil
					})
				})
				require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
				require.Equal(t, 1, strings.Count(err.Error(), ": "+io.ErrShortWrite.Error()), err)
			})
		})
	}
}

func TestAPanicBehind32UnclaimedErrorsIsRaised(t *testing.T) {
	ctx := asynctest.Context(t)
	err := panicOrError(func() error {
		return async.Scope(ctx, func(ctx context.Context) error {
			for i := range 32 {
				<-async.Start(ctx, func(context.Context) error { return fmt.Errorf("error %d", i) }).Done()
			}
			<-async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Done()
			return nil
		})
	})
	require.IsType(t, (*async.PanicError)(nil), err)
	require.ErrorIs(t, err, errPlanted)
}

// TestAPanicIsToldOnceThroughScopesWhereSiblingsFail: the scope that raises it tells
// what failed there, and the root what failed further out.
func TestAPanicIsToldOnceThroughScopesWhereSiblingsFail(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		const depth = 8
		var nest func(ctx context.Context, depth int) error
		nest = func(ctx context.Context, depth int) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("flush %d failed", depth) })
				if depth == 0 {
					async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
					return nil
				}
				return nest(ctx, depth-1)
			})
		}
		ctx, check := asynctest.Root(ctx)
		text := panicOrError(func() error { return nest(ctx, depth) }).Error()
		require.Equal(t, 1, strings.Count(text, errPlanted.Error()+"\n"), text)
		require.Equal(t, 1, strings.Count(text, "failed"), text)
		require.Contains(t, text, "flush 0 failed")
		require.Equal(t, depth, strings.Count(check().Error(), "failed"))
	})
}

// TestAPanicDuringGoexitIsNotLost: also that of an inner scope that is raised
// again while its body's t.FailNow is under way.
func TestAPanicDuringGoexitIsNotLost(t *testing.T) {
	handler := func(context.Context) error {
		defer plantedPanic()
		runtime.Goexit()
		return nil
	}
	for name, body := range map[string]func(ctx context.Context) error{
		"Go task": func(ctx context.Context) error { async.Go(ctx, handler); return nil },
		"future":  func(ctx context.Context) error { return second(async.Start(ctx, handler).Await(ctx, 0)) },
		"body":    handler,
		"child of an inner scope": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
					runtime.Goexit()
					return nil
				})
			})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, check := asynctest.Root(t.Context())
			told := make(chan error, 1)
			go func() {
				var err error
				defer func() {
					if v := recover(); v != nil { // and Goexit may go on
						err = v.(error)
					}
					told <- err
				}()
				err = async.Scope(ctx, body)
			}()
			require.ErrorIs(t, errors.Join(<-told, check()), errPlanted)
		})
	}
}

// TestWhatCameBesideASecondPanicIsKept, though it says that it was stopped because of
// the first, and a panic is never attached to itself.
func TestWhatCameBesideASecondPanicIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return io.ErrNoProgress })
					<-ctx.Done()
					panic(io.ErrShortWrite)
				})
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		})
		for _, want := range []error{errPlanted, io.ErrShortWrite, io.ErrNoProgress} {
			require.ErrorIs(t, everythingIn(err), want)
		}
		require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
		require.Equal(t, 1, strings.Count(err.Error(), io.ErrNoProgress.Error()), err)
	})
}
