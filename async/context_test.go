package async_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
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
	"below WithTimeout": func(ctx context.Context, f func(context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		time.AfterFunc(24*time.Hour, cancel)
		contextGo(ctx, func(ctx context.Context) { contextGo(ctx, f) })
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
		if strings.Contains(started, "WithoutCancel") {
			continue // not cancelled with its scope
		}
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
		if strings.Contains(started, "WithoutCancel") {
			continue // not cancelled with its scope
		}
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

func TestErrIsThatOfTheContextATaskWasStartedWith(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for _, use := range []func(ctx context.Context){
				func(ctx context.Context) { _ = ctx.Done() },
				func(ctx context.Context) { async.OnExit(ctx, contextHook) },
			} {
				derived, cancel := context.WithTimeout(ctx, time.Hour)
				async.Go(derived, func(ctx context.Context) error {
					defer cancel()
					use(ctx)
					time.Sleep(2 * time.Second)
					require.Equal(t, derived.Err(), ctx.Err())
					return nil
				})
			}
			return nil
		}, async.Timeout(time.Second))
	})
}

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
