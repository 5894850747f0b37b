package async_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// TestAStartThatRacesTheEndIsJoinedOrRefused has bare goroutines start tasks in
// a scope that drains, is cancelled, or ends. Each start must either run and be
// over when Scope returns, or be refused.
func TestAStartThatRacesTheEndIsJoinedOrRefused(t *testing.T) {
	const rounds, starts = 11_200, 9 // 100,000 starts
	for round := range rounds {
		var running, ran, refused atomic.Int32
		var bare sync.WaitGroup
		var ended atomic.Bool
		task := func(context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			if ended.Load() {
				t.Error("a task runs after its scope has returned")
			}
			ran.Add(1)
			return nil
		}
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range starts {
				bare.Go(func() { refused.Add(startOne(ctx, i, task)) })
			}
			if round%2 == 0 {
				return errors.New("cancelled")
			}
			return nil
		})
		require.Zero(t, running.Load(), "Scope returned before a task")
		ended.Store(true)
		bare.Wait()
		require.EqualValues(t, starts, ran.Load()+refused.Load(), "a start was neither run nor refused")
	}
}

// startOne starts task in one of several ways; 1 if it was refused.
func startOne(ctx context.Context, way int, task func(context.Context) error) (refused int32) {
	switch way % 3 {
	case 0:
		defer func() {
			if recover() != nil {
				refused = 1
			}
		}()
		async.Go(ctx, task)
	case 1:
		if _, err := async.Start(ctx, task).Wait(context.Background()); errors.Is(err, async.ErrScopeEnded) {
			return 1
		}
	case 2:
		if err := async.Scope(ctx, task); errors.Is(err, async.ErrScopeEnded) {
			return 1
		}
	}
	return 0
}

// TestAHookOrPromiseThatRacesTheEndIsNotLost has bare goroutines register exit
// hooks and make promises in a scope that ends. Every hook runs once: before
// Scope returns, or at once on who came too late. Every promise settles.
func TestAHookOrPromiseThatRacesTheEndIsNotLost(t *testing.T) {
	const each = 5
	for round := range fewer(20_000, 1_000) {
		var joined, late, settled atomic.Int32
		var bare sync.WaitGroup
		var ended atomic.Bool
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			for range each {
				bare.Go(func() {
					async.OnExit(ctx, func(_ context.Context, outcome error) error {
						if errors.Is(outcome, async.ErrScopeEnded) {
							late.Add(1)
							return nil
						}
						if ended.Load() {
							t.Error("a hook runs after its scope has returned")
						}
						joined.Add(1)
						return nil
					})
				})
				bare.Go(func() {
					f, p := async.NewPromise[int](ctx)
					won := p.Resolve(7)
					v, err := f.Wait(context.Background())
					switch {
					case won && v == 7 && err == nil:
					case !won && (errors.Is(err, async.ErrScopeEnded) || errors.Is(err, async.ErrAbandoned)):
					default:
						t.Errorf("Resolve said %t, Wait gave %v, %v", won, v, err)
					}
					settled.Add(1)
				})
			}
			if round%2 == 0 {
				runtime.Gosched()
			}
			return nil
		})
		before := joined.Load()
		ended.Store(true)
		bare.Wait()
		if err != nil { // somebody waited for a promise in the instant it was abandoned
			require.ErrorIs(t, err, async.ErrAbandoned)
		}
		require.Equal(t, before, joined.Load(), "Scope returned before a hook")
		require.EqualValues(t, each, joined.Load()+late.Load(), "a hook was lost or ran twice")
		require.EqualValues(t, each, settled.Load())
	}
}

// Lexical scopes run on a goroutine that is alive, so they need no scope around
// them that is.
func TestLexicalScopesOpenAfterTheirOwnerHasEnded(t *testing.T) {
	root := context.WithValue(asynctest.Context(t), contextKey{}, "kept")
	var ended context.Context
	_ = async.Scope(root, func(ctx context.Context) error { ended = ctx; return nil }, async.Name("over"))
	lookAround := func(ctx context.Context) error {
		require.Equal(t, "kept", ctx.Value(contextKey{}))
		require.Len(t, asynctest.Live(root), 1, "it stands at the root")
		v, err := async.Execute(ctx, answer).Await(ctx, 0)
		require.Equal(t, 42, v)
		return errors.Join(err, ctx.Err())
	}
	require.NoError(t, async.Scope(context.WithoutCancel(ended), lookAround))
	require.NoError(t, async.Shield(ended, time.Hour, lookAround))
	require.NoError(t, async.Shield(context.WithoutCancel(ended), time.Hour, lookAround))
	require.NoError(t, async.ForEach(context.WithoutCancel(ended), slices.Values([]int{1}), func(ctx context.Context, _ int) error { return lookAround(ctx) }))
	for _, err := range async.Map(context.WithoutCancel(ended), slices.Values([]int{1}), func(ctx context.Context, _ int) (int, error) { return 0, lookAround(ctx) }) {
		require.NoError(t, err)
	}
	require.Empty(t, asynctest.Live(root))

	never := func(context.Context) error { t.Error("ran"); return nil }
	other, cancel := context.WithCancelCause(context.WithoutCancel(ended))
	cancel(errContext)
	for _, done := range []context.Context{ended, other} {
		require.ErrorIs(t, async.Scope(done, never), async.ErrScopeEnded, "whatever the cause")
		require.ErrorContains(t, async.Scope(done, never), "over")
		require.ErrorIs(t, async.ForEach(done, slices.Values([]int{1}), func(ctx context.Context, _ int) error { return never(ctx) }), async.ErrScopeEnded)
		for _, err := range async.Map(done, slices.Values([]int{1}), func(ctx context.Context, _ int) (int, error) { return 0, never(ctx) }) {
			require.ErrorIs(t, err, async.ErrScopeEnded)
			require.ErrorContains(t, err, "over")
		}
	}
}

// A function that takes a ctx opens a Scope of its own. It is called in hooks of
// scopes that have ended, too.
func TestALateHookMayOpenScopes(t *testing.T) {
	var ended context.Context
	_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error { ended = ctx; return nil })
	cleaned := 0
	async.OnExit(ended, func(ctx context.Context, _ error) error {
		clean := func(ctx context.Context) error { cleaned++; return ctx.Err() }
		require.NoError(t, async.Scope(ctx, clean))
		require.NoError(t, async.Shield(ctx, time.Second, clean))
		return nil
	})
	require.Equal(t, 2, cleaned)
}

func TestLateStartsNameTheScope(t *testing.T) {
	root := asynctest.Context(t)
	var ended context.Context
	_ = async.Scope(root, func(ctx context.Context) error { ended = ctx; return nil }, async.Name("deploy"))
	late := []error{panicFrom(func() { async.Go(ended, nothing) }).(error)}
	tell := func(_ any, err error) { late = append(late, err) }
	promised, _ := async.NewPromise[int](ended)
	tell(promised.Await(root, 0))
	tell(async.Execute(ended, answer).Await(root, 0))
	tell(async.Start(ended, nothing).Await(root, 0))
	tell(async.Race(ended, answer).Await(root, 0))
	tell(async.All[int](ended).Await(root, 0))
	tell(async.ForkJoin(ended, []int{1}, func(context.Context, int) (int, error) { return 0, nil }).Await(root, 0))
	tell(async.Poll(ended, async.Every(1), func(context.Context) (int, bool, error) { return 0, true, nil }).Await(root, 0))
	for i, err := range late {
		require.ErrorIs(t, err, async.ErrScopeEnded, i)
		require.ErrorContains(t, err, "deploy", i)
	}
	require.Equal(t, async.ErrScopeEnded, context.Cause(ended), "the cause itself is plain")
}

// TestAScopeKeepsNothingOfWhatWasGiven: of values, nor of failures and panics that
// were: a server's scope may last for a year.
func TestAScopeKeepsNothingOfWhatWasGiven(t *testing.T) {
	for name, handler := range map[string]func(context.Context) ([]byte, error){
		"values": func(context.Context) ([]byte, error) { return make([]byte, 10_000), nil },
		"errors": func(context.Context) ([]byte, error) { return nil, errors.New(string(make([]byte, 10_000))) },
		"panics": func(context.Context) ([]byte, error) { panic(string(make([]byte, 10_000))) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				before := liveHeap()
				for range 1000 {
					f := async.Execute(ctx, handler, async.OnDiscard(func([]byte) {}))
					<-f.Done()
					_, _ = f.Wait(ctx)
				}
				require.Less(t, liveHeap()-before, int64(1<<20))
				return nil
			}))
		})
	}
}
