package async_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

type (
	contextKey  struct{}
	contextKey2 struct{}
)

var errContext = errors.New("the cause")

// contextStarts is the ways to come by a context of ours. Each calls f with
// one that belongs to the scope of ctx.
var contextStarts = map[string]func(ctx context.Context, f func(ctx context.Context)){
	"a body": func(ctx context.Context, f func(context.Context)) {
		_ = async.Scope(ctx, func(ctx context.Context) error { f(ctx); return nil })
	},
	"a Go task":   func(ctx context.Context, f func(context.Context)) { contextGo(ctx, f) },
	"a future":    func(ctx context.Context, f func(context.Context)) { async.Start(ctx, contextTask(f)) },
	"with a hook": func(ctx context.Context, f func(context.Context)) { contextGo(ctx, f, async.OnAbort(contextHook)) },
	"with a timeout": func(ctx context.Context, f func(context.Context)) {
		contextGo(ctx, f, async.Timeout(time.Hour))
	},
	"a grandchild": func(ctx context.Context, f func(context.Context)) {
		contextGo(ctx, func(ctx context.Context) { contextGo(ctx, f) })
	},
	"a task in a scope in a task": func(ctx context.Context, f func(context.Context)) {
		contextGo(ctx, func(ctx context.Context) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, f); return nil })
		})
	},
	"under WithValue": func(ctx context.Context, f func(context.Context)) {
		contextGo(context.WithValue(ctx, contextKey2{}, 2), f)
	},
	"under WithCancel": func(ctx context.Context, f func(context.Context)) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(24*time.Hour, cancel)
		contextGo(ctx, f)
	},
	"under WithTimeout": func(ctx context.Context, f func(context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		time.AfterFunc(24*time.Hour, cancel)
		contextGo(ctx, f)
	},
	"under WithoutCancel": func(ctx context.Context, f func(context.Context)) { contextGo(context.WithoutCancel(ctx), f) },
	"below WithoutCancel": func(ctx context.Context, f func(context.Context)) {
		contextGo(context.WithoutCancel(ctx), func(ctx context.Context) { contextGo(ctx, f) })
	},
	"a task with a slot": func(ctx context.Context, f func(context.Context)) {
		_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, f); return nil }, async.Limit(1))
	},
}

func contextHook(context.Context, error) error { return nil }

func contextTask(f func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { f(ctx); return nil }
}

func contextGo(ctx context.Context, f func(context.Context), opts ...async.TaskOption) {
	async.Go(ctx, contextTask(f), opts...)
}

// TestATaskContextIsARealOne: whatever is asked of it, before the cancellation
// or only after it, it answers as a standard context does.
func TestATaskContextIsARealOne(t *testing.T) {
	// A look is taken at a context; what it returns is called when that has
	// been cancelled.
	looks := map[string]func(t *testing.T, ctx context.Context) func(){
		"Err and Cause": func(t *testing.T, ctx context.Context) func() {
			return func() {
				require.Equal(t, context.Canceled, ctx.Err())
				require.Equal(t, errContext, context.Cause(ctx))
			}
		},
		"Cause first": func(t *testing.T, ctx context.Context) func() {
			return func() {
				require.Equal(t, errContext, context.Cause(ctx))
				require.Equal(t, context.Canceled, ctx.Err())
			}
		},
		"Done": func(t *testing.T, ctx context.Context) func() {
			done := ctx.Done()
			return func() {
				<-done
				require.Equal(t, done, ctx.Done(), "always the same channel")
				require.Equal(t, context.Canceled, ctx.Err())
			}
		},
		"WithCancel": func(t *testing.T, ctx context.Context) func() {
			child, cancel := context.WithCancel(ctx)
			return func() {
				<-child.Done()
				require.Equal(t, context.Canceled, child.Err())
				require.Equal(t, errContext, context.Cause(child))
				cancel()
			}
		},
		"WithCancel, cancelled first": func(t *testing.T, ctx context.Context) func() {
			own := errors.New("child")
			child, cancel := context.WithCancelCause(ctx)
			before := ctx.Err()
			cancel(own)
			<-child.Done()
			require.Equal(t, before, ctx.Err(), "nothing goes up")
			return func() {
				if before == nil {
					require.Equal(t, own, context.Cause(child))
				} else {
					require.Equal(t, errContext, context.Cause(child))
				}
				require.Equal(t, errContext, context.Cause(ctx))
			}
		},
		"WithTimeout": func(t *testing.T, ctx context.Context) func() {
			child, cancel := context.WithTimeout(ctx, time.Minute)
			deadline, ok := child.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Now().Add(time.Minute), deadline)
			return func() {
				<-child.Done()
				require.Equal(t, context.Canceled, child.Err())
				require.Equal(t, errContext, context.Cause(child))
				cancel()
			}
		},
		"WithValue": func(t *testing.T, ctx context.Context) func() {
			child := context.WithValue(ctx, contextKey2{}, "new")
			require.Equal(t, "new", child.Value(contextKey2{}))
			require.Equal(t, "root", child.Value(contextKey{}))
			return func() {
				<-child.Done()
				require.Equal(t, context.Canceled, child.Err())
				require.Equal(t, errContext, context.Cause(child))
			}
		},
		"WithoutCancel": func(t *testing.T, ctx context.Context) func() {
			child := context.WithoutCancel(ctx)
			return func() {
				require.NoError(t, child.Err())
				require.NoError(t, context.Cause(child))
				require.Nil(t, child.Done())
				require.Equal(t, "root", child.Value(contextKey{}))
			}
		},
		"AfterFunc": func(t *testing.T, ctx context.Context) func() {
			called := make(chan struct{})
			stop := context.AfterFunc(ctx, func() { close(called) })
			return func() {
				<-called
				require.False(t, stop())
			}
		},
		"AfterFunc, stopped": func(t *testing.T, ctx context.Context) func() {
			if ctx.Err() != nil {
				return func() {}
			}
			stop := context.AfterFunc(ctx, func() { t.Error("called although it was stopped") })
			require.True(t, stop())
			require.False(t, stop())
			return func() { synctest.Wait() }
		},
		"values": func(t *testing.T, ctx context.Context) func() {
			require.Equal(t, "root", ctx.Value(contextKey{}))
			return func() {
				require.Equal(t, "root", ctx.Value(contextKey{}))
				require.Nil(t, ctx.Value("nobody has this"))
			}
		},
		"an inner scope": func(t *testing.T, ctx context.Context) func() {
			return func() {
				require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
					require.Equal(t, errContext, context.Cause(ctx))
					return ctx.Err()
				}), errContext)
			}
		},
	}
	run := func(t *testing.T, start func(context.Context, func(context.Context)), late bool, looks ...func(*testing.T, context.Context) func()) {
		synctest.Test(t, func(t *testing.T) {
			root := context.WithValue(asynctest.Context(t), contextKey{}, "root")
			looked := false
			err := async.Scope(root, func(scope context.Context) error {
				cancelled := make(chan struct{})
				time.AfterFunc(time.Second, func() {
					async.Go(scope, func(context.Context) error { return errContext })
					time.AfterFunc(time.Second, func() { close(cancelled) })
				})
				start(scope, func(ctx context.Context) {
					if late {
						<-cancelled
					} else {
						require.NoError(t, ctx.Err())
						require.NoError(t, context.Cause(ctx))
					}
					var then []func()
					for _, look := range looks {
						then = append(then, look(t, ctx))
					}
					<-cancelled
					for _, f := range then {
						f()
					}
					looked = true
				})
				return nil
			})
			require.ErrorIs(t, err, errContext)
			require.True(t, looked)
		})
	}
	for started, start := range contextStarts {
		t.Run(started+"/all looks", func(t *testing.T) {
			run(t, start, false, slices.Collect(maps.Values(looks))...)
		})
		for looked, look := range looks { // what is asked first decides what is made, so one at a time
			t.Run(started+"/late/"+looked, func(t *testing.T) { run(t, start, true, look) })
		}
	}
}

// TestAContextWakesWhoWaitsForIt: the cancellation is pushed, not only there to
// be asked for.
func TestAContextWakesWhoWaitsForIt(t *testing.T) {
	for started, start := range contextStarts {
		t.Run(started, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					start(ctx, func(ctx context.Context) {
						child, cancel := context.WithTimeout(ctx, time.Minute)
						defer cancel()
						<-child.Done()
						<-ctx.Done()
					})
					return nil
				}, async.Timeout(time.Second))
				if err != nil { // nothing needs to fail: all did what they were to do
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				tookAbout(t, time.Second, begin)
			})
		})
	}
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

func TestValuesComeFromTheContextATaskWasStartedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := context.WithValue(asynctest.Context(t), contextKey{}, "root")
		require.NoError(t, async.Scope(root, func(ctx context.Context) error {
			with := context.WithValue(ctx, contextKey{}, "derived")
			async.Go(ctx, func(ctx context.Context) error {
				require.Equal(t, "root", ctx.Value(contextKey{}))
				return nil
			})
			async.Go(with, func(ctx context.Context) error {
				require.Equal(t, "derived", ctx.Value(contextKey{}))
				async.Go(ctx, func(ctx context.Context) error {
					require.Equal(t, "derived", ctx.Value(contextKey{}))
					require.Nil(t, ctx.Value(contextKey2{}))
					return nil
				})
				return async.Scope(context.WithValue(ctx, contextKey2{}, 2), func(ctx context.Context) error {
					require.Equal(t, "derived", ctx.Value(contextKey{}))
					require.Equal(t, 2, ctx.Value(contextKey2{}))
					return nil
				})
			})
			async.Go(context.WithoutCancel(with), func(ctx context.Context) error {
				require.Equal(t, "derived", ctx.Value(contextKey{}))
				return nil
			})
			return nil
		}))
	})
}

// TestDeadlines: a context says DeadlineExceeded only where its Deadline said
// when.
func TestDeadlineExceededOnlyWhereDeadlineSaidSo(t *testing.T) {
	for name, test := range map[string]struct {
		run      func(ctx context.Context, look func(context.Context))
		deadline time.Duration // of the context looked at; 0: none
		err      error
	}{
		"the scope's timeout": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { look(ctx); return nil }, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"a leaf below it": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, look); return nil }, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"the task's timeout": {func(ctx context.Context, look func(context.Context)) {
			contextGo(ctx, look, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"the earlier of both, the task's": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, look, async.Timeout(time.Second)); return nil }, async.Timeout(time.Minute))
		}, time.Second, context.DeadlineExceeded},
		"the earlier of both, the scope's": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, look, async.Timeout(time.Minute)); return nil }, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"the derived context's": {func(ctx context.Context, look func(context.Context)) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			contextGo(ctx, look)
		}, time.Second, context.DeadlineExceeded},
		"an Await's limit": {func(ctx context.Context, look func(context.Context)) {
			_, _ = async.Start(ctx, contextTask(look)).Await(ctx, time.Second)
		}, 0, context.Canceled},
		"an Await's context's": {func(ctx context.Context, look func(context.Context)) {
			f := async.Start(ctx, contextTask(look))
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = f.Await(ctx, 0)
		}, 0, context.Canceled},
		"the scope's, under WithoutCancel": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(context.WithoutCancel(ctx), look); return nil }, async.Timeout(time.Second))
		}, 0, context.Canceled},
		"a leaf below that": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				contextGo(context.WithoutCancel(ctx), func(ctx context.Context) { contextGo(ctx, look) })
				return nil
			}, async.Timeout(time.Second))
		}, 0, context.Canceled},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", looked at late"}[late], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					looked := make(chan struct{}, 1)
					_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						test.run(ctx, func(ctx context.Context) {
							if late {
								time.Sleep(2 * time.Second)
							}
							deadline, ok := ctx.Deadline()
							require.Equal(t, test.deadline != 0, ok)
							if ok {
								require.Equal(t, start.Add(test.deadline), deadline)
							}
							<-ctx.Done()
							if !late {
								tookAbout(t, time.Second, start)
							}
							require.Equal(t, test.err, ctx.Err())
							require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
							looked <- struct{}{}
						})
						return nil
					})
					require.Len(t, looked, 1)
				})
			})
		}
	}
}

func TestWithoutCancelFreesFromTheContextNotFromTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			derived, cancel := context.WithCancelCause(ctx)
			free := async.Start(context.WithoutCancel(derived), func(ctx context.Context) error {
				time.Sleep(time.Second)
				require.NoError(t, ctx.Err(), "free from derived")
				<-ctx.Done()
				require.Equal(t, errContext, context.Cause(ctx), "not from its scope")
				return nil
			})
			only := errors.New("only derived")
			bound := async.Start(derived, func(ctx context.Context) error {
				<-ctx.Done()
				require.Equal(t, only, context.Cause(ctx))
				return nil
			})
			cancel(only)
			time.Sleep(2 * time.Second)
			require.True(t, free.IsRunning())
			require.False(t, bound.IsRunning())
			return errContext
		})
		require.ErrorIs(t, err, errContext)
	})
}

func TestAScopeUnderWithoutCancelIsFreeFromItsContextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancel(asynctest.Context(t))
		require.NoError(t, async.Scope(context.WithoutCancel(outer), func(ctx context.Context) error {
			cancel()
			synctest.Wait()
			_, err := async.Start(ctx, func(ctx context.Context) error { return ctx.Err() }).Await(ctx, 0)
			return err
		}))
	})
}

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

			err = async.Scope(ctx, func(context.Context) error { ran = true; return nil })
			require.ErrorIs(t, err, async.ErrScopeEnded)
			synctest.Wait()
			require.False(t, ran)
		}
	})
}

func TestAnExitHookOnAnEndedScopeRunsAtOnceOnTheCallersGoroutine(t *testing.T) {
	withStoredContexts(t, func(t *testing.T, _, ctx context.Context) {
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
			exits := 0 // not atomic: it is counted on this goroutine
			async.OnExit(ctx, func(ctx context.Context, outcome error) error {
				exits++
				require.Equal(t, async.ErrScopeEnded, outcome)
				require.NoError(t, ctx.Err())
				_, ok := ctx.Deadline()
				require.True(t, ok)
				return nil
			})
			require.Equal(t, 1, exits)
		}
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
