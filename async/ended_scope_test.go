package async_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
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

// TestAScopeThatLastsKeepsNothingOfWhatHasEnded in it: no timer, hook, watch or
// alarm of it.
func TestAScopeThatLastsKeepsNothingOfWhatHasEnded(t *testing.T) {
	const n = 2000
	beats := func(ctx context.Context) error { async.Beat(ctx); return nil }
	hook := async.OnAbort(contextHook)
	for name, use := range map[string]func(ctx context.Context){
		"StopOn": func(ctx context.Context) {
			_ = awaited(ctx, func(ctx context.Context) error { <-closedOrDone(ctx); return nil }, async.StopOn(make(chan struct{}), nil))
		},
		"Heartbeat": func(ctx context.Context) { _ = awaited(ctx, beats, async.Heartbeat(time.Hour)) },
		"Timeout":   func(ctx context.Context) { _ = awaited(ctx, beats, async.Timeout(time.Hour)) },
		"abort hook": func(ctx context.Context) {
			f := async.Start(ctx, waitHook, hook)
			_, _ = f.Await(ctx, -1)
			<-f.Done()
		},
		"promise with an abort hook": func(ctx context.Context) {
			f, p := async.NewPromise[int](ctx, hook, async.Timeout(time.Hour))
			p.Resolve(1)
			_, _ = f.Await(ctx, time.Hour)
		},
		"cancelled promise": func(ctx context.Context) {
			f, _ := async.NewPromise[int](ctx, hook)
			f.Cancel(errPlanted)
			_, _ = f.Await(ctx, 0)
		},
		"Sleep and Await": func(ctx context.Context) {
			_ = async.Sleep(ctx, time.Microsecond)
			_, _ = async.Start(ctx, beats).Await(ctx, time.Hour)
		},
		"inner scope with timers": func(ctx context.Context) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, beats)
				return errPlanted
			}, async.OnStall(time.Hour, func(*async.StragglerError) {}), async.DetachAfter(time.Hour), async.Timeout(time.Hour))
		},
		"awaited panic": func(ctx context.Context) {
			_ = awaited(ctx, func(context.Context) error { panic(errPlanted) })
		},
		"derived ctx": func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_ = awaited(ctx, func(ctx context.Context) error { <-closedOrDone(ctx); return nil })
		},
		"Watch": func(ctx context.Context) {
			_, _ = async.Watch(ctx, giveOne, async.Every(time.Hour), beats).Await(ctx, 0)
		},
		"Poll": func(ctx context.Context) {
			_, _ = async.Poll(ctx, async.Every(time.Hour), func(context.Context) (int, bool, error) { return 1, true, nil }).Await(ctx, 0)
		},
		"late exit hook": func(ctx context.Context) {
			var ended context.Context
			_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
			async.OnExit(ended, func(context.Context, error) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				run := func(n int) {
					for range n {
						use(ctx)
					}
				}
				run(n / 10) // what is made once
				before := heapInUse()
				run(n)
				require.Less(t, heapInUse(), before+40*n)
				return nil
			}))
		})
	}
}

// closedOrDone returns a channel that is closed, but asks ctx for its own first.
func closedOrDone(ctx context.Context) <-chan struct{} {
	_ = ctx.Done()
	closed := make(chan struct{})
	close(closed)
	return closed
}
