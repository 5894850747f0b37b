package async_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// withStoredContexts calls f with contexts that somebody has kept from a scope
// that has ended.
func withStoredContexts(t *testing.T, f func(t *testing.T, root, stored context.Context)) {
	for started, start := range contextStarts {
		for used, use := range map[string]func(context.Context){
			"never looked at":    func(context.Context) {},
			"its Done in use":    func(ctx context.Context) { _ = ctx.Done() },
			"it has had a child": func(ctx context.Context) { async.Go(ctx, nothing) },
		} {
			for derived, derive := range map[string]func(context.Context) context.Context{
				"itself":    func(ctx context.Context) context.Context { return ctx },
				"WithValue": func(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey{}, 1) },
			} {
				if derived == "WithValue" && used != "never looked at" {
					continue
				}
				t.Run(started+"/"+used+"/"+derived, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						root := asynctest.Context(t)
						var stored context.Context
						require.NoError(t, async.Scope(root, func(ctx context.Context) error {
							start(ctx, func(ctx context.Context) {
								use(ctx)
								stored = derive(ctx)
							})
							return nil
						}))
						f(t, root, stored)
						require.Empty(t, asynctest.Live(root), "nothing has stayed registered")
					})
				})
			}
		}
	}
}

func TestAContextOfAnEndedScopeIsCancelled(t *testing.T) {
	withStoredContexts(t, func(t *testing.T, root, ctx context.Context) {
		require.Equal(t, context.Canceled, ctx.Err())
		<-ctx.Done()
		require.Equal(t, async.ErrScopeEnded, context.Cause(ctx))
		child, cancel := context.WithCancel(ctx)
		<-child.Done()
		require.Equal(t, async.ErrScopeEnded, context.Cause(child))
		cancel()
		called := make(chan struct{})
		context.AfterFunc(ctx, func() { close(called) })
		<-called

		never, _ := async.NewPromise[int](root)
		_, err := never.Wait(ctx)
		require.ErrorIs(t, err, async.ErrScopeEnded)
		v, err := async.Completed(7, nil).Await(ctx, -1)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

func TestAnEndedScopeRefusesWhatIsStarted(t *testing.T) {
	withStoredContexts(t, func(t *testing.T, root, ctx context.Context) {
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
			ran := false
			f := async.Execute(ctx, func(context.Context) (int, error) { ran = true; return 1, nil })
			_, err, ok := f.Result()
			require.True(t, ok)
			require.ErrorIs(t, err, async.ErrScopeEnded)
			_, err = f.Await(root, 0)
			require.ErrorIs(t, err, async.ErrScopeEnded)

			p := panicFrom(func() { async.Go(ctx, func(context.Context) error { ran = true; return nil }) })
			require.NotNil(t, p)

			require.ErrorIs(t, p.(error), async.ErrScopeEnded)
			synctest.Wait()
			require.False(t, ran)
		}
		ran := false
		require.ErrorIs(t, async.Scope(ctx, func(context.Context) error { ran = true; return nil }), async.ErrScopeEnded)
		require.False(t, ran)
		require.NoError(t, async.Scope(context.WithoutCancel(ctx), func(context.Context) error { ran = true; return nil }))
		require.True(t, ran)
	})
}

func TestAStoredContextKeepsItsRoot(t *testing.T) {
	withStoredContexts(t, func(t *testing.T, root, ctx context.Context) {
		open := make(chan struct{})
		async.Detach(ctx, "later", func(context.Context) error { <-open; return nil })
		require.Equal(t, []string{"later"}, asynctest.Live(root))
		require.Equal(t, []string{"later"}, asynctest.Live(ctx))
		close(open)
		require.NoError(t, async.Shutdown(context.WithoutCancel(ctx)), "it is that root's Shutdown")
		require.NotNil(t, panicFrom(func() { async.Detach(root, "too late", nothing) }))
	})
}

func TestAStoredContextKeepsItsFirstCause(t *testing.T) {
	for started, start := range contextStarts {
		if strings.Contains(started, "WithoutCancel") {
			continue // not cancelled with its scope
		}
		t.Run(started, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root := asynctest.Context(t)
				var stored context.Context
				require.ErrorIs(t, async.Scope(root, func(ctx context.Context) error {
					time.AfterFunc(time.Second, func() { async.Go(ctx, func(context.Context) error { return errContext }) })
					start(ctx, func(ctx context.Context) {
						<-ctx.Done()
						stored = ctx
					})
					return nil
				}), errContext)
				require.Equal(t, errContext, context.Cause(stored))
				_, err := async.Execute(stored, answer).Await(root, 0)
				require.ErrorIs(t, err, async.ErrScopeEnded)
			})
		})
	}
}

// TestAGoroutineStartedByHandMayUseTheContext: what it starts belongs to the
// scope, as long as that lasts.
func TestAGoroutineStartedByHandMayUseTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := asynctest.Context(t)
		start := time.Now()
		late := make(chan error, 1)
		require.NoError(t, async.Scope(root, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				go func() {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
					v, err := async.Execute(ctx, answer).Await(ctx, 0)
					require.NoError(t, err)
					require.Equal(t, 42, v)
					<-ctx.Done()
					require.Equal(t, async.ErrScopeEnded, context.Cause(ctx))
					_, err = async.Execute(ctx, answer).Wait(root)
					late <- err
				}()
				time.Sleep(time.Second)
				return nil
			})
			return nil
		}))
		tookAbout(t, time.Minute, start)
		require.ErrorIs(t, <-late, async.ErrScopeEnded)
	})
}

// TestUsesOfAContextRaceTheEndOfItsScope: who keeps a context and uses it while
// the scope ends is either joined or refused.
func TestUsesOfAContextRaceTheEndOfItsScope(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 2000 {
		var bare sync.WaitGroup
		ended, ran := false, false // the race detector watches: a task that runs is joined
		require.NoError(t, async.Scope(root, func(ctx context.Context) error {
			bare.Go(func() {
				for range i % 4 {
					runtime.Gosched()
				}
				_, err := async.Execute(ctx, func(context.Context) (int, error) {
					ran = true
					require.False(t, ended)
					return 0, nil
				}).Wait(root)
				if err != nil {
					require.ErrorIs(t, err, async.ErrScopeEnded)
				}
			})
			bare.Go(func() {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				<-child.Done()
				require.Equal(t, async.ErrScopeEnded, context.Cause(child))
			})
			return nil
		}))
		ended = true
		_ = ran
		bare.Wait()
	}
	require.Empty(t, asynctest.Live(root))
}
