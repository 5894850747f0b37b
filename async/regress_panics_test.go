package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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

func TestASlowObserverHoldsUpNoCancellation(t *testing.T) {
	for _, slow := range []async.EventKind{async.EventPanic, async.EventEnd} {
		t.Run(slow.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				err := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); tookAbout(t, 0, start); return nil })
						async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
						return nil
					}, async.Observe(async.ObserverFunc(func(e async.Event) {
						if e.Kind == slow {
							time.Sleep(2 * time.Second)
						}
					})))
				})
				require.ErrorIs(t, err, errPlanted)
			})
		})
	}
}

func TestAPanicIsTheCauseThoughItsObserverIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var cause error
		_ = panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { cause = context.Cause(ctx); return nil })
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return io.EOF })
				return nil
			}, async.Observe(async.ObserverFunc(func(e async.Event) {
				if e.Kind == async.EventPanic {
					time.Sleep(5 * time.Second)
				}
			})))
		})
		require.ErrorIs(t, cause, errPlanted)
	})
}

func TestAPanickingTaskWithAStubbornChildCancelsItsScopeAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); tookAbout(t, 0, start); return nil })
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
					plantedPanic()
					return nil
				})
				return nil
			})
		})
		require.ErrorIs(t, err, errPlanted)
	})
}

// TestAPanicThatWaitsToBeRaisedIsPrintedOnce wherever it happened and whoever
// holds it up: with its stack, once, and with who is waited for.
func TestAPanicThatWaitsToBeRaisedIsPrintedOnce(t *testing.T) {
	stays := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(d); return nil }
	}
	for name, test := range map[string]struct {
		body func(ctx context.Context) error
		left string
	}{
		"on its way through scopes": {func(ctx context.Context) error {
			async.Go(ctx, stays(time.Minute))
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, stays(20*time.Second), async.Name("inner"))
				plantedPanic()
				return nil
			})
		}, "\tinner ("},
		"behind a future": {func(ctx context.Context) error {
			async.Start(ctx, func(context.Context) error { plantedPanic(); return nil })
			async.Go(ctx, stays(time.Hour), async.Name("sibling"))
			return nil
		}, "\tsibling ("},
		"while the body goes on": {func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
			return stays(time.Minute)(ctx)
		}, "\touter ("},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				require.ErrorIs(t, panicOrError(func() error { return async.Scope(ctx, test.body, async.Name("outer")) }), errPlanted)
				text := fmt.Sprint(check())
				require.Equal(t, 1, strings.Count(text, "has waited"), text)
				require.Equal(t, 1, strings.Count(text, "plantedPanic("), text)
				require.Contains(t, text, test.left)
			})
		})
	}
}

func TestObserversHearOfAPanicOnce(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"of a future": func(ctx context.Context) error {
			<-async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Done()
			return nil
		},
		"that passes through scopes": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(context.Context) error { plantedPanic(); return nil })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var heard atomic.Int32
			ctx := asynctest.Context(t)
			require.ErrorIs(t, panicOrError(func() error {
				return async.Scope(ctx, body, async.Observe(async.ObserverFunc(func(e async.Event) {
					if e.Kind == async.EventPanic {
						heard.Add(1)
					}
				})))
			}), errPlanted)
			require.EqualValues(t, 1, heard.Load())
		})
	}
}

func TestAPanicIsToldOnceThroughScopesWhereSiblingsFail(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		const depth = 8
		var nest func(ctx context.Context, depth int) error
		nest = func(ctx context.Context, depth int) error {
			if depth == 0 {
				plantedPanic()
			}
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("flush %d failed", depth) })
				return nest(ctx, depth-1)
			})
		}
		text := panicOrError(func() error { return nest(ctx, depth) }).Error()
		require.Equal(t, 1, strings.Count(text, errPlanted.Error()+"\n"), text)
		require.Equal(t, depth, strings.Count(text, "failed"), text)
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

func TestTwoGoexitsAreTwo(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for i := range 2 {
				async.Go(ctx, func(context.Context) error {
					time.Sleep(time.Duration(i) * time.Second)
					runtime.Goexit()
					return nil
				})
			}
			return nil
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Len(t, list.Errors, 2)
	})
}

func TestOnFailureIsAskedAboutAnErrorThatMentionsGoexit(t *testing.T) {
	var seen error
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			err := second(async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil }).Await(ctx, 0))
			return fmt.Errorf("connection: %w", err)
		})
		return nil
	}, async.OnFailure(func(err error) error { seen = err; return nil })))
	require.ErrorIs(t, seen, async.ErrGoexit)
}

func TestANilObserverPanicsAtTheCall(t *testing.T) {
	require.Panics(t, func() { async.Observe(nil) })
	require.Panics(t, func() { async.Observe(async.ObserverFunc(nil)) })
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
						plantedPanic()
						return nil
					})
				})
				require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
				require.Equal(t, 1, strings.Count(err.Error(), ": "+io.ErrShortWrite.Error()), err)
			})
		})
	}
}
