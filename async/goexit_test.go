package async_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestGoexitAnywhereIsToldAndNobodyHangs is the same for runtime.Goexit, which
// is what t.FailNow does.
func TestGoexitAnywhereIsToldAndNobodyHangs(t *testing.T) {
	for name, place := range places {
		if name == "body" {
			continue // takes the goroutine along, see below
		}
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						select {
						case <-ctx.Done():
						case <-time.After(time.Minute):
						}
						return nil
					})
					place(ctx, runtime.Goexit)
					return nil
				})
				require.ErrorIs(t, err, async.ErrGoexit)
			})
		})
	}
}

func TestABodyThatCallsGoexitJoinsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		joined := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); joined = true; return nil })
				runtime.Goexit()
				return nil
			})
			t.Error("Goexit was stopped")
		}()
		<-done
		require.True(t, joined)
	})
}

// TestAnErrorIsListedOnceHoweverManyRepeatIt holds for ErrGoexit, too.
func TestAnErrorIsListedOnceHoweverManyRepeatIt(t *testing.T) {
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
		require.Equal(t, async.ErrGoexit, err)
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

func TestAnItemWithATimeLimitThatCallsGoexitTellsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			results, err := async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) {
				async.Go(ctx, func(context.Context) error { return errPlanted })
				_ = async.Sleep(ctx, time.Second)
				runtime.Goexit()
				return 0, nil
			}, async.ItemTimeout(time.Hour)).Await(ctx, 0)
			require.NoError(t, err)
			require.ErrorIs(t, results[0].Err, errPlanted)
			require.ErrorIs(t, results[0].Err, async.ErrGoexit)
			return nil
		}))
	})
}

// TestFailNowInATaskFailsTheTestAndJoins runs tests that fail as other
// processes, because a test that fails cannot be caught.
func TestFailNowInATaskFailsTheTestAndJoins(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, f func(context.Context) error) error{
		"body": func(ctx context.Context, f func(context.Context) error) error { return f(ctx) },
		"Go":   func(ctx context.Context, f func(context.Context) error) error { async.Go(ctx, f); return nil },
		"future": func(ctx context.Context, f func(context.Context) error) error {
			_, err := async.Start(ctx, f).Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("AMBIT_TEST_FAILNOW") != "" {
				defer fmt.Println("the test has come to its end")
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); fmt.Println("a sibling was joined"); return nil })
					return start(ctx, func(context.Context) error { require.FailNow(t, "no good"); return nil })
				})
				fmt.Println("Scope returned:", err)
				return
			}
			out, err := runSelf(t, "AMBIT_TEST_FAILNOW=1")
			require.Error(t, err, out)
			require.Contains(t, out, "no good")
			require.Contains(t, out, "a sibling was joined")
			require.Contains(t, out, "the test has come to its end")
			require.NotContains(t, out, "panic:")
			if name != "body" {
				require.Contains(t, out, "Scope returned: "+async.ErrGoexit.Error())
			}
		})
	}
}

// recovered returns the value that f panics with, nil if it does not.
func recovered(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// throughScopes calls body in so many scopes, one in the other.
func throughScopes(ctx context.Context, depth int, body func(ctx context.Context)) {
	if depth == 0 {
		body(ctx)
		return
	}
	_ = async.Scope(ctx, func(ctx context.Context) error {
		throughScopes(ctx, depth-1, body)
		return nil
	})
}

func TestABodysPanicGoesOnAsItWas(t *testing.T) {
	type own struct{ n int }
	for name, value := range map[string]any{
		"a sentinel":    http.ErrAbortHandler,
		"a string":      "words",
		"a struct":      own{7},
		"uncomparable":  []int{1, 2},
		"a typed nil":   (*own)(nil),
		"a runtime one": errors.New("as if by the runtime"),
	} {
		for _, depth := range []int{1, 2, 10} {
			got := recovered(func() {
				throughScopes(asynctest.Context(t), depth, func(context.Context) { panic(value) })
			})
			require.Equal(t, value, got, "%s through %d scopes", name, depth)
		}
	}
	var e runtime.Error
	got := recovered(func() {
		throughScopes(asynctest.Context(t), 3, func(context.Context) { _ = []int{}[len(name(t))] })
	})
	require.ErrorAs(t, got.(error), &e)
}

func name(t *testing.T) string { return t.Name() }

// TestABodysPanicKeepsTheFramesItCameFrom: a deferred call above the scopes sees
// them in the stack, as it would without the scopes.
func TestABodysPanicKeepsTheFramesItCameFrom(t *testing.T) {
	var stack string
	recovered(func() {
		defer func() { stack = string(debug.Stack()) }()
		throughScopes(asynctest.Context(t), 3, func(context.Context) { plantedPanic() })
	})
	require.Contains(t, stack, "plantedPanic")
}

// TestABodysPanicIsJoinedFirst: everything has ended, with the panic as its
// cause, before it goes on.
func TestABodysPanicIsJoinedFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var cause error
		hooked := false
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(_ context.Context, outcome error) error {
					hooked = true
					require.ErrorIs(t, outcome, errPlanted)
					return nil
				})
				async.Go(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					cause = context.Cause(ctx)
					return nil
				})
				plantedPanic()
				return nil
			})
		})
		require.Equal(t, errPlanted, value)
		var p *async.PanicError
		require.ErrorAs(t, cause, &p)
		require.Contains(t, string(p.Stack), "plantedPanic")
		require.True(t, hooked)
	})
}

func TestAPanicThatTheScopeGaveUpOnIsToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx, check := asynctest.Root(t.Context())
		release := make(chan struct{})
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { <-release; return errors.New("late") })
					plantedPanic()
					return nil
				})
				return nil
			}, async.DetachAfter(time.Second))
		})
		require.ErrorIs(t, value.(error), errPlanted)
		require.ErrorAs(t, everythingIn(value.(error)), new(*async.StragglerError))
		close(release)
		err := check()
		require.ErrorContains(t, err, "late") // which is the root's
		require.NotErrorIs(t, everythingIn(err), errPlanted)
	})
}

// errExiting has methods that call Goexit, as those of an error do that uses
// require with the t of a test. called counts the calls.
type errExiting struct {
	error
	called *atomic.Int32
}

func (e errExiting) exit()         { e.called.Add(1); runtime.Goexit() }
func (e errExiting) Is(error) bool { e.exit(); return true }
func (e errExiting) As(any) bool   { e.exit(); return true }
func (e errExiting) Unwrap() error { e.exit(); return nil }

// TestAnErrorWhoseMethodsCallGoexitHoldsNobodyUp: the goroutine of the task ends when
// the outcome of that is made, and the scope does not wait for ever. If it is the
// goroutine that has called Scope, that ends, as with any Goexit there.
func TestAnErrorWhoseMethodsCallGoexitHoldsNobodyUp(t *testing.T) {
	cancelled := func(start func(ctx context.Context, bad error)) func(ctx context.Context, bad error) error {
		return func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error { start(ctx, bad); return errPlanted })
		}
	}
	for name, use := range map[string]func(ctx context.Context, bad error) error{
		"of a Go task that was told to stop": cancelled(func(ctx context.Context, bad error) {
			async.Go(ctx, stopsWith(bad))
		}),
		"of a Go task that has started another": cancelled(func(ctx context.Context, bad error) {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, nothing); return stopsWith(bad)(ctx) })
		}),
		"wrapped": cancelled(func(ctx context.Context, bad error) {
			async.Go(ctx, stopsWith(fmt.Errorf("reading: %w", errors.Join(bad, bad))))
		}),
		"beside a panic that is returned": cancelled(func(ctx context.Context, bad error) {
			f := async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, stopsWith(bad))
				time.Sleep(time.Nanosecond)
				panic(errPlanted)
			})
			async.Go(ctx, func(ctx context.Context) error { _, err := f.Join(ctx); return err })
		}),
		"of a future": cancelled(func(ctx context.Context, bad error) { async.Start(ctx, stopsWith(bad)) }),
		"of a body": func(ctx context.Context, bad error) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return async.Scope(ctx, stopsWith(bad))
		},
		"of an item": cancelled(func(ctx context.Context, bad error) {
			async.ForkJoin(ctx, []int{1, 2}, func(ctx context.Context, _ int) (int, error) { return 0, stopsWith(bad)(ctx) })
		}),
		"as a cause": func(ctx context.Context, bad error) error {
			f := async.Start(ctx, stopsWith(errPlanted))
			f.Cancel(bad)
			_, err := f.Join(ctx)
			return errors.Join(err, async.Scope(ctx, func(context.Context) error { return bad }))
		},
		"of a run": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, func(context.Context) error { return bad }, async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: 2})).Await(ctx, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var called atomic.Int32
				ended := make(chan error, 1)
				go func() {
					defer close(ended)
					ended <- use(ctx, errExiting{errors.New("exits"), &called})
				}()
				if err, came := <-ended; came {
					require.Error(t, err)
				} else {
					require.Contains(t, []string{"of a body", "as a cause"}, name)
				}
				if name != "as a cause" {
					require.NotZero(t, called.Load(), "nothing was asked")
				}
			})
		})
	}
}

// endlessError wraps itself: what looks for its end finds none.
type endlessError struct{}

func (endlessError) Error() string   { return "endless" }
func (e endlessError) Unwrap() error { return e }

func TestAnErrorThatWrapsItselfHangsNothing(t *testing.T) {
	fails := func(context.Context) error { return endlessError{} }
	stopped := func(ctx context.Context) error { <-ctx.Done(); return endlessError{} }
	for name, task := range map[string]func(ctx context.Context){
		"of a task":           func(ctx context.Context) { async.Go(ctx, fails) },
		"of one that stopped": func(ctx context.Context) { async.Go(ctx, stopped, async.Timeout(time.Second)) },
		"joined": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { return errors.Join(stopped(ctx), endlessError{}) }, async.Timeout(time.Second))
		},
		"of a future": func(ctx context.Context) { _, _ = async.Start(ctx, stopped).Await(ctx, time.Second) },
		"of a probe": func(ctx context.Context) {
			_, _ = async.Repeat(ctx, async.Every(time.Second), fails).Await(ctx, 0)
		},
		"of a task that is started again": func(ctx context.Context) {
			async.Go(ctx, fails, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		},
		"panicked": func(ctx context.Context) {
			_, err := async.Start(ctx, func(context.Context) error { panic(endlessError{}) }).Await(ctx, 0)
			_ = err.Error()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					task(ctx)
					return nil
				})
				if err != nil {
					require.NotEmpty(t, err.Error())
				}
			})
		})
	}
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

// refusesLater takes the first task and refuses the others.
type refusesLater struct{ taken bool }

func (x *refusesLater) Execute(task func()) error {
	if x.taken {
		return errPlanted
	}
	x.taken = true
	go task()
	return nil
}

// A task that is started again after a Goexit is refused: both are told.
func TestAGoexitBeforeARefusalIsTold(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption){
		"Go": async.Go,
		"Start": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) {
			async.Start(ctx, f, opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start(ctx, func(context.Context) error { runtime.Goexit(); return nil }, async.On(&refusesLater{}),
						async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond)}))
					return nil
				})
				assert.ErrorIs(t, err, async.ErrGoexit)
				assert.ErrorIs(t, err, errPlanted)
				assert.ErrorAs(t, err, new(*async.RejectedError))
			})
		})
	}
}
