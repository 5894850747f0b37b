package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
)

// strangeContext is a context of a type that package context does not know.
type strangeContext struct{ context.Context }

// TestAContextThatOnlyAddsValuesIsDoneLikeItsOwners is about contexts whose
// cancellation need not be looked at beside the owner's.
func TestAContextThatOnlyAddsValuesIsDoneLikeItsOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for _, ctx := range []context.Context{ctx, context.WithValue(ctx, levelKey{}, "kept"), strangeContext{ctx}} {
				async.Go(ctx, func(ctx context.Context) error {
					got, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, deadline, got)
					<-ctx.Done()
					require.Equal(t, context.DeadlineExceeded, ctx.Err())
					require.Equal(t, context.DeadlineExceeded, context.Cause(ctx))
					return nil
				})
			}
			return nil
		})
		boom := errors.New("boom")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(context.WithValue(ctx, levelKey{}, "kept"), func(ctx context.Context) error {
				require.Equal(t, "kept", ctx.Value(levelKey{}))
				<-ctx.Done()
				require.Equal(t, context.Canceled, ctx.Err())
				require.Equal(t, boom, context.Cause(ctx))
				return nil
			})
			return boom
		})
		require.ErrorIs(t, err, boom)
	})
}

type ownChannel struct {
	context.Context
	done chan struct{}
}

func (s *ownChannel) Done() <-chan struct{} { return s.done }

func TestAStrangersContextIsWatchedOnce(t *testing.T) {
	const n = 1000
	before := runtime.NumGoroutine()
	err := async.Scope(&ownChannel{context.Background(), make(chan struct{})}, func(ctx context.Context) error {
		var ready sync.WaitGroup
		ready.Add(n)
		stop := make(chan struct{})
		for range n {
			async.Go(ctx, func(ctx context.Context) error {
				done := ctx.Done()
				ready.Done()
				select {
				case <-done:
				case <-stop:
				}
				return nil
			})
		}
		ready.Wait()
		require.LessOrEqual(t, goroutines(before+n+10)-before-n, 10)
		close(stop)
		return nil
	})
	require.NoError(t, err)
}

// countedContext counts how often its Err is asked, which asks its parent's, as
// its Done, which is its own, does not.
type countedContext struct {
	context.Context
	done  chan struct{}
	asked *atomic.Int64
}

func (c countedContext) Done() <-chan struct{} { return c.done }

func (c countedContext) Err() error { c.asked.Add(1); return c.Context.Err() }

func TestContextsOfOnesOwnAreNotAskedMoreOftenThanTheDepth(t *testing.T) {
	const depth = 16
	var asked atomic.Int64
	var down func(ctx context.Context, n int) error
	down = func(ctx context.Context, n int) error {
		if n == 0 {
			asked.Store(0)
			return ctx.Err()
		}
		return async.Scope(countedContext{ctx, make(chan struct{}), &asked}, func(ctx context.Context) error { return down(ctx, n-1) })
	}
	require.NoError(t, down(asynctest.Context(t), depth))
	require.LessOrEqual(t, asked.Load(), int64(2*depth))
}

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
