package async_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAContextCostsNoGoroutine(t *testing.T) {
	for _, started := range []string{"a body", "a Go task", "a future", "with a hook", "with a timeout", "under WithValue", "under WithTimeout", "under WithoutCancel"} {
		t.Run(started, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				contextStarts[started](ctx, func(ctx context.Context) {
					before := runtime.NumGoroutine()
					var undo []func()
					for range 1000 {
						_, cancel := context.WithCancel(ctx)
						stop := context.AfterFunc(ctx, func() {})
						undo = append(undo, cancel, func() { stop() })
					}
					require.Less(t, goroutines(before+99)-before, 100)
					for _, f := range undo {
						f()
					}
				})
				return nil
			}))
		})
	}
}

func TestAThousandTasksWithContextsInUseCostAGoroutineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			before := runtime.NumGoroutine()
			open := make(chan struct{})
			for range 1000 {
				derived, cancel := context.WithTimeout(ctx, time.Hour)
				async.Go(derived, func(ctx context.Context) error {
					defer cancel()
					child, cancel := context.WithCancel(ctx)
					defer cancel()
					select {
					case <-child.Done():
					case <-open:
					}
					return nil
				}, async.Timeout(time.Hour), async.OnAbort(contextHook))
			}
			synctest.Wait()
			require.Less(t, goroutines(before+1099)-before, 1100)
			close(open)
			return nil
		}))
	})
}

// TestContextsDerivedAtEveryLevelCostNoMoreThanTheDepth would not end in a
// lifetime if every level asked its context and its owner, and both asked the
// level above.
func TestContextsDerivedAtEveryLevelCostNoMoreThanTheDepth(t *testing.T) {
	const depth = 200
	derive := map[string]func(context.Context) context.Context{
		"values": func(ctx context.Context) context.Context { return context.WithValue(ctx, levelKey{}, "") },
		"values twice": func(ctx context.Context) context.Context {
			return context.WithValue(context.WithValue(ctx, levelKey{}, ""), levelKey{}, 1)
		},
		"without cancel": context.WithoutCancel,
		"a stranger's":   func(ctx context.Context) context.Context { return strangeContext{ctx} },
		"cancel and values": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			t.Cleanup(cancel)
			return context.WithValue(ctx, levelKey{}, "")
		},
	}
	type way func(ctx context.Context, f func(context.Context) error) error
	ways := map[string]way{
		"Start": func(ctx context.Context, f func(context.Context) error) error {
			_, err := async.Start(ctx, f).Wait(ctx)
			return err
		},
		"Go":    func(ctx context.Context, f func(context.Context) error) error { async.Go(ctx, f); return nil },
		"Scope": func(ctx context.Context, f func(context.Context) error) error { return async.Scope(ctx, f) },
	}
	for name, derive := range derive {
		for how, start := range ways {
			t.Run(name+"/"+how, func(t *testing.T) {
				deepest := make(chan error, 1)
				var down func(ctx context.Context, left int) error
				down = func(ctx context.Context, left int) error {
					if left == 0 {
						deepest <- ctx.Err()
						return nil
					}
					return start(derive(ctx), func(ctx context.Context) error { return down(ctx, left-1) })
				}
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { return down(ctx, depth) }))
				require.NoError(t, <-deepest)
			})
		}
	}
}

type levelKey struct{}

// TestADeepChainOfWaitsKeepsItsStacksSmall: what looks up the tree does not
// recurse at every level.
func TestADeepChainOfWaitsKeepsItsStacksSmall(t *testing.T) {
	depth := fewer(2000, 700)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var down func(ctx context.Context, n int) (int, error)
	down = func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			runtime.ReadMemStats(&after)
			return 0, nil
		}
		return async.Execute(ctx, func(ctx context.Context) (int, error) { return down(ctx, n-1) }).Await(ctx, time.Minute)
	}
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { return second(down(ctx, depth)) }))
	require.Less(t, (int(after.StackInuse)-int(before.StackInuse))/depth, 32<<10)
}
