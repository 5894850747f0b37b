package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAnObserverThatPanicsOrExitsIsAnErrorOfTheScope(t *testing.T) {
	for name, tc := range map[string]struct {
		bang func()
		want error
	}{"panic": {plantedPanic, errPlanted}, "Goexit": {runtime.Goexit, async.ErrGoexit}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ran := false
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { ran = true; return nil })
					return nil
				}, async.Observe(async.ObserverFunc(func(async.Event) { tc.bang() })))
				require.ErrorIs(t, err, tc.want)
				require.True(t, ran)
			})
		})
	}
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

func TestObserversHearOfAPanicOnce(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"of a future": func(ctx context.Context) error {
			<-async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Done()
			return nil
		},
		"that passes through scopes": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
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

func TestANilObserverPanicsAtTheCall(t *testing.T) {
	require.Panics(t, func() { async.Observe(nil) })
	require.Panics(t, func() { async.Observe(async.ObserverFunc(nil)) })
}

func TestObserversSeeStartsEndsAndPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner, outer []string
		note := func(to *[]string) async.Observer {
			return async.ObserverFunc(func(e async.Event) {
				*to = append(*to, fmt.Sprint(e.Task, " ", e.Kind, " ", e.Duration, " ", e.Cause))
			})
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("task"))
				time.Sleep(time.Second)
				f.Cancel(errPlanted)
				return nil
			}, async.Observe(note(&inner)), async.Name("inner"))
		}, async.Observe(note(&outer))))
		require.Equal(t, []string{"task start 0s <nil>", "task end 1s planted"}, inner)
		require.Equal(t, []string{"inner start 0s <nil>", "task start 0s <nil>", "task end 1s planted", "inner end 1s <nil>"}, outer)
	})
}

// TestObserversAreToldOfAPanicThatDoesNotCount, once, and of how the task ended.
func TestObserversAreToldOfAPanicThatDoesNotCount(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var told []string
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, plantPanic, async.Name("bad"))
					return nil
				}, async.OnPanic(func(*async.PanicError) error { return answer }), async.Observe(async.ObserverFunc(func(e async.Event) {
					told = append(told, fmt.Sprint(e.Kind, " ", e.Task, " ", errors.Is(e.Err, errPlanted)))
				})))
				require.Equal(t, answer, err)
				require.Equal(t, []string{"start bad false", "panic bad true", "end bad true"}, told)
			})
		})
	}
}
