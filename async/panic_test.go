package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

var errPlanted = errors.New("planted")

func plantedPanic() { panic(errPlanted) }

// places are where users' functions run in a scope.
var places = map[string]func(ctx context.Context, bang func()){
	"body": func(_ context.Context, bang func()) { bang() },
	"Go task": func(ctx context.Context, bang func()) {
		async.Go(ctx, func(context.Context) error { bang(); return nil })
	},
	"future": func(ctx context.Context, bang func()) {
		async.Start(ctx, func(context.Context) error { bang(); return nil })
	},
	"sub task": func(ctx context.Context, bang func()) {
		async.Start(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { bang(); return nil })
			return nil
		})
	},
	"nested scope": func(ctx context.Context, bang func()) {
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { bang(); return nil })
				return nil
			})
		})
	},
	"exit hook": func(ctx context.Context, bang func()) {
		async.OnExit(ctx, func(context.Context, error) error { bang(); return nil })
	},
	"abort hook": func(ctx context.Context, bang func()) {
		f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil },
			async.OnAbort(func(context.Context, error) error { bang(); return nil }))
		_, _ = f.Await(ctx, time.Millisecond)
		_, err := f.Wait(context.WithoutCancel(ctx)) // the error of the hook is the task's
		async.Go(ctx, func(context.Context) error { return err })
	},
	"discard hook": func(ctx context.Context, bang func()) {
		f := async.Execute(ctx, func(ctx context.Context) (int, error) { time.Sleep(time.Second); return 1, nil },
			async.OnDiscard(func(int) { bang() }))
		_, _ = f.Await(ctx, time.Millisecond)
	},
}

// TestAPanicAnywhereIsToldAndNobodyHangs panics in each place, with siblings
// running.
func TestAPanicAnywhereIsToldAndNobodyHangs(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var siblings atomic.Int32
				told := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						for range 3 {
							siblings.Add(1)
							async.Go(ctx, func(ctx context.Context) error {
								defer siblings.Add(-1)
								select {
								case <-ctx.Done():
								case <-time.After(5 * time.Second):
								}
								return nil
							})
						}
						place(ctx, plantedPanic)
						return nil
					})
				})
				require.Zero(t, siblings.Load(), "siblings are joined")
				if name == "body" {
					require.Equal(t, errPlanted, told, "a body's panic goes on as it was")
					return
				}
				var p *async.PanicError
				require.ErrorAs(t, told, &p)
				require.Equal(t, errPlanted, p.Unwrap())
				require.Contains(t, fmt.Sprintf("%+v", p), "plantedPanic", "the stack of who panicked is in the text")
				require.Equal(t, 1, strings.Count(p.Error(), "async: panic in"), "passing through scopes it is not wrapped again")
			})
		})
	}
}

func TestAPanicBehindAFutureIsAnErrorToEveryWaiter(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { plantedPanic(); return nil })
			for range 3 {
				_, err := f.Await(ctx, 0)
				var p *async.PanicError
				require.ErrorAs(t, err, &p)
				require.ErrorIs(t, err, errPlanted)
			}
			return nil
		}))
	})
}

// TestAPanicWithNilIsAPanic, with the runtime's old behaviour too, where
// recover cannot tell it from Goexit.
func TestAPanicWithNilIsAPanic(t *testing.T) {
	if os.Getenv("AMBIT_TEST_PANICNIL") == "" {
		out, err := runSelf(t, "AMBIT_TEST_PANICNIL=1", "GODEBUG=panicnil=1")
		require.NoError(t, err, out)
		require.Contains(t, out, "panicnil was tried")
	} else {
		func() {
			defer func() { require.Nil(t, recover()) }()
			panic(nil)
		}()
		fmt.Println("panicnil was tried")
	}
	bang := func() { panic(nil) }
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				told := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error { place(ctx, bang); return nil })
				})
				if nilPanic := (*runtime.PanicNilError)(nil); name != "body" || !errors.As(told, &nilPanic) {
					require.ErrorAs(t, told, new(*async.PanicError))
				}
				require.NotErrorIs(t, told, async.ErrGoexit)
			})
		})
	}
}

// runSelf runs the test that calls it as another process and returns what that
// printed and how it ended.
func runSelf(t *testing.T, env ...string) (string, error) {
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+strings.Join(pattern, "/"))
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// everythingIn returns err with all that it tells of, also what went wrong beside a
// panic, which errors.Is and errors.As do not reach.
func everythingIn(err error) error {
	all := []error{err}
	for i := 0; i < len(all) && i < 1000; i++ {
		switch e := all[i].(type) {
		case *async.PanicError:
			all = append(append(all, e.Also...), e.Unwrap())
		case interface{ Unwrap() error }:
			all = append(all, e.Unwrap())
		case interface{ Unwrap() []error }:
			all = append(all, e.Unwrap()...)
		}
	}
	return errors.Join(all...)
}

// panicOrError returns what f returned or panicked with.
func panicOrError(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	return f()
}

func attackScopePanic(ctx context.Context, body func(ctx context.Context) error, opts ...async.ScopeOption) (p *async.PanicError, err error) {
	v := panicFrom(func() { err = async.Scope(ctx, body, opts...) })
	p, _ = v.(*async.PanicError)
	return p, err
}

// A raised panic that passes a scope which lets a straggler go: what failed beside it is told, and who is left.
func TestARaisedPanicPassesDetachAfter(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errSecond })
			async.Go(ctx, onStop(rows))
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return nil })
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { panic("boom") })
				return nil
			})
		}, async.DetachAfter(time.Second))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		all := r.all() + fmt.Sprintf("%+v", p)
		for _, want := range []string{errSecond.Error(), rows, "still running"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%q was told %d times:\nroot: %s\npanic: %+v", want, strings.Count(all, want), r.all(), p)
			}
		}
	})
}

func TestAPanicAndATextBesideDetachAfter(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			async.Go(ctx, onStop(rows))
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return nil })
			async.Go(ctx, func(ctx context.Context) error { panic("boom") })
			return nil
		}, async.DetachAfter(time.Second))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		all := r.all() + fmt.Sprintf("%+v", p)
		if strings.Count(all, rows) != 1 {
			t.Errorf("the text was told %d times:\nroot: %s\npanic: %+v", strings.Count(all, rows), r.all(), p)
		}
	})
}

// Each error beside a panic is in Also once, by whatever way it came.
func TestWhatCameBesideAPanicIsListedOnce(t *testing.T) {
	task := func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errSecond })
		panic("boom")
	}
	same := async.OnPanic(func(p *async.PanicError) error { return p })
	for name, f := range map[string]func(ctx context.Context) error{
		"go":    func(ctx context.Context) error { async.Go(ctx, task); return nil },
		"start": func(ctx context.Context) error { async.Start(ctx, task); return nil },
		"restart": func(ctx context.Context) error {
			async.Go(ctx, task, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 1}))
			return nil
		},
		"restart start": func(ctx context.Context) error {
			async.Start(ctx, task, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 1}))
			return nil
		},
		"awaited": func(ctx context.Context) error { _, err := async.Start(ctx, task).Join(ctx); return err },
		"group":   func(ctx context.Context) error { g := async.NewGroup(ctx); _ = g.Go(task); return g.Wait(ctx) },
		"group nobody waits": func(ctx context.Context) error {
			g := async.NewGroup(ctx)
			_ = g.Go(task)
			async.Go(ctx, func(ctx context.Context) error { return nil })
			return nil
		},
		"onpanic": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, task); return nil }, same)
		},
		"nested": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, task); return nil })
			return nil
		},
		"forkjoin": func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return 0, task(ctx) })
			return nil
		},
		"scope in start": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, task); return nil })
			})
			return nil
		},
		"start in start": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error { async.Start(ctx, task); return nil })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				var cause error
				p, err := attackScopePanic(ctx, func(ctx context.Context) error {
					context.AfterFunc(ctx, func() { cause = context.Cause(ctx) })
					return f(ctx)
				})
				synctest.Wait()
				all := r.all()
				if p != nil {
					all += fmt.Sprintf("%v", p)
					if !errors.Is(p, cause) && cause != async.ErrScopeEnded || !strings.Contains(p.Error(), "goroutine ") {
						t.Errorf("cause %v, raised %v", cause, p)
					}
				} else {
					all += fmt.Sprintf("%+v", err)
					if err != nil && strings.Contains(err.Error(), "goroutine ") {
						t.Errorf("a returned panic has a stack in its text: %v", err)
					}
				}
				if n := strings.Count(all, errSecond.Error()); n != 1 {
					t.Errorf("told %d times:\nroot: %s\npanic: %+v\nerr: %+v", n, r.all(), p, err)
				}
				if n := strings.Count(all, ": boom"); n != 1 {
					t.Errorf("panic told %d times:\nroot: %s\npanic: %+v\nerr: %+v", n, r.all(), p, err)
				}
			})
		})
	}
}

// Forty panics: one is raised, 32 beside it, the rest counted.
func TestFortyPanics(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				for i := range 40 {
					async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); panic(fmt.Sprint("boom", i)) })
				}
				return nil
			})
		})
		if p == nil || len(p.Also) != 32 || !strings.Contains(p.Error(), "and 7 more") || r.all() != "" {
			t.Errorf("%d %v root %s", len(p.Also), p, r.all())
		}
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
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		}, "\tinner ("},
		"of the body": {func(ctx context.Context) error {
			async.Go(ctx, stays(time.Hour), async.Name("stubborn"))
			plantedPanic()
			return nil
		}, "\tstubborn ("},
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

func panicsFirst(context.Context) error { panic(http.ErrAbortHandler) }

func panicsLater(context.Context) error { panic(http.ErrAbortHandler) }

// TestAPanicThatWasRecoveredIsNoLaterOne, though both have the same value, as
// those of servers have: the later one has its own stack, and is told.
func TestAPanicThatWasRecoveredIsNoLaterOne(t *testing.T) {
	var told []string
	ctx := asynctest.Context(t)
	err := async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, func(ctx context.Context) error {
			require.Equal(t, http.ErrAbortHandler, recovered(func() { _ = async.Scope(ctx, panicsFirst, async.Name("first")) }))
			return panicsLater(ctx)
		}, async.Name("second")).Await(ctx, 0)
		requirePanic(t, err, "second", "panicsLater")
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventPanic {
			told = append(told, e.Task)
		}
	})))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, told)
}

// TestAPanicThatIsPassedOnIsOne, also by a function that has recovered it: the scopes
// further out raise what the first has raised, and its cause matches that.
func TestAPanicThatIsPassedOnIsOne(t *testing.T) {
	ctx := asynctest.Context(t)
	var cause error
	_, err := async.Start(ctx, func(ctx context.Context) error {
		defer func() { panic(recover()) }()
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, panicsFirst, async.Name("first"))
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
	}, async.Name("second")).Await(ctx, 0)
	requirePanic(t, err, "first", "panicsFirst")
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, cause, err)
	require.NotContains(t, err.Error(), "\n", "that of a panic which is returned is one line")
}

func requirePanic(t *testing.T, err error, task, function string) {
	var p *async.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, task, p.Task)
	require.Contains(t, string(p.Stack), function)
}

// panicsWith are values that do harm when they are asked for their text, or for
// what they wrap.
var panicsWith = map[string]func() any{
	"a nil *PanicError":              func() any { return (*async.PanicError)(nil) },
	"a zero PanicError":              func() any { return new(async.PanicError) },
	"a PanicError of a user":         func() any { return &async.PanicError{Value: (*async.PanicError)(nil), Task: "mine"} },
	"a PanicError that holds itself": func() any { p := new(async.PanicError); p.Value = p; return p },
	"one whose Error panics":         func() any { return harmful{func() { panic("in Error") }} },
	"one whose Error panics with it": func() any { e := &harmful{}; e.f = func() { panic(e) }; return e },
	"one whose String panics":        func() any { return harmfulString{} },
	"one whose Format panics":        func() any { return harmfulFormat{} },
	"one whose GoString panics":      func() any { return &async.PanicError{Value: harmfulFormat{}} },
	"an error that wraps one":        func() any { return fmt.Errorf("wrapped: %w", (*async.PanicError)(nil)) },
	"a nil error of a type":          func() any { return (*nilError)(nil) },
	"one that is not comparable":     func() any { return uncomparable{nil} },
	"a nil function":                 func() any { return (func())(nil) },
}

type harmful struct{ f func() }

func (e harmful) Error() string { e.f(); return "harmful" }

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

type harmfulString struct{}

func (harmfulString) String() string { panic("in String") }

type harmfulFormat struct{}

func (harmfulFormat) Format(fmt.State, rune) { panic(harmfulFormat{}) }

type uncomparable []error

func (uncomparable) Error() string { return "uncomparable" }

// TestAnyValueMayBePanickedWith: whoever is told can ask for its text, and
// compare it, and the process goes on.
func TestAnyValueMayBePanickedWith(t *testing.T) {
	for name, value := range panicsWith {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				told := func(err error) {
					var p *async.PanicError
					require.ErrorAs(t, err, &p)
					require.NotEmpty(t, p.Error())
					require.False(t, errors.Is(err, errPlanted))
					require.False(t, errors.As(err, new(*async.TimeoutError)))
					_ = p.Unwrap()
				}
				raised := func(f func()) {
					defer func() {
						value := recover()
						if p, ok := value.(*async.PanicError); ok {
							require.NotEmpty(t, p.Error())
							require.False(t, errors.Is(p, errPlanted))
						}
						require.True(t, value != nil)
					}()
					f()
				}
				boom := func(context.Context) error { panic(value()) }
				raised(func() {
					_ = async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, boom); return nil })
				})
				raised(func() { _ = async.Scope(ctx, boom) })
				_, err := async.Start(ctx, boom).Await(ctx, 0)
				told(err)
				told(async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(ctx context.Context, _ error) error { return boom(ctx) })
					async.OnExit(ctx, func(ctx context.Context, _ error) error { return errors.New("another") })
					return nil
				}))
				raised(func() {
					_ = async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, boom)
						async.Go(ctx, boom)
						return errors.New("beside")
					})
				})
			})
		})
	}
}

// TestAPanicErrorOfAUserIsNoTrap: its zero value and nil are errors like others.
func TestAPanicErrorOfAUserIsNoTrap(t *testing.T) {
	for _, p := range []*async.PanicError{nil, {}, {Value: errPlanted}} {
		require.NotEmpty(t, p.Error())
		require.False(t, errors.Is(p, async.ErrGoexit))
		require.False(t, errors.As(p, new(*async.TimeoutError)))
		require.False(t, p.Is(errPlanted))
	}
	require.NoError(t, (*async.PanicError)(nil).Unwrap())
}

// TestTheStackOfAPanicIsTheUsers: it begins where the panic was, and shows
// nothing of how the library came to call that.
func TestTheStackOfAPanicIsTheUsers(t *testing.T) {
	for name, tc := range map[string]struct {
		panics func(ctx context.Context) error
		first  string
	}{
		"panic":       {func(context.Context) error { plantedPanic(); return nil }, "plantedPanic("},
		"nil pointer": {func(context.Context) error { return errors.New(*nilString()) }, "TestTheStackOfAPanicIsTheUsers."},
		"index": {func(context.Context) error {
			return errors.New(strings.Repeat("x", len(make([]int, 3)[wrongIndex():])))
		}, "TestTheStackOfAPanicIsTheUsers."},
		"misuse":       {func(ctx context.Context) error { async.Go(ctx, nil); return nil }, "TestTheStackOfAPanicIsTheUsers."},
		"raised again": {raisedAgain, "raisedAgain.func1("},
		"nested scopes": {func(ctx context.Context) error {
			return async.Scope(ctx, func(context.Context) error { plantedPanic(); return nil })
		}, "plantedPanic("},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				_, err := async.Start(ctx, tc.panics).Await(ctx, 0)
				var p *async.PanicError
				require.ErrorAs(t, err, &p)
				lines := strings.Split(string(p.Stack), "\n")
				require.Regexp(t, `^goroutine \d+ \[`, lines[0])
				require.Contains(t, lines[1], "async_test."+tc.first)
				require.NotContains(t, string(p.Stack), "ambit/async.")
				require.NotContains(t, string(p.Stack), "debug.Stack")
				require.NotContains(t, string(p.Stack), "runtime.")
			})
		})
	}
}

func raisedAgain(context.Context) error {
	defer func() { panic(fmt.Sprint("again: ", recover())) }()
	plantedPanic()
	return nil
}

//go:noinline
func nilString() *string { return nil }

//go:noinline
func wrongIndex() int { return 7 }

// TestPanicNilHasTheStackOfWhoPanicked also where GODEBUG=panicnil=1 makes it one
// that nothing is recovered from. It runs itself as another process.
func TestPanicNilHasTheStackOfWhoPanicked(t *testing.T) {
	if os.Getenv("AMBIT_TEST_PANICNIL") != "" {
		_, err := async.Start(context.Background(), func(context.Context) error { plantedNilPanic(); return nil }).Await(context.Background(), 0)
		fmt.Printf("%+v\n", err)
		_ = async.Scope(context.Background(), func(context.Context) error { plantedNilPanic(); return nil })
		return
	}
	for _, setting := range []string{"panicnil=0", "panicnil=1"} {
		out, err := runSelf(t, "AMBIT_TEST_PANICNIL=1", "GODEBUG="+setting)
		require.Error(t, err)
		future, scope, _ := strings.Cut(out, "panic: ")
		require.Contains(t, future, "plantedNilPanic(")
		require.Contains(t, scope, "plantedNilPanic(", "%s", out)
	}
}

//go:noinline
func plantedNilPanic() { panic(nil) }

func TestSeveralPanicsAndErrorsAreAllKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, failed := errors.New("other"), errors.New("failed")
		told := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { panic(errPlanted) })
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); panic(other) })
				async.Go(ctx, func(context.Context) error { time.Sleep(2 * time.Second); return failed })
				return nil
			})
		})
		for _, want := range []error{errPlanted, other, failed} {
			require.ErrorIs(t, everythingIn(told), want)
		}
	})
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
						async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
						return nil
					})
				})
				require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
				require.Equal(t, 1, strings.Count(err.Error(), ": "+io.ErrShortWrite.Error()), err)
			})
		})
	}
}

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

// TestAPanicIsToldOnceThroughScopesWhereSiblingsFail: the scope that raises it tells
// what failed there, and the root what failed further out.
func TestAPanicIsToldOnceThroughScopesWhereSiblingsFail(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		const depth = 8
		var nest func(ctx context.Context, depth int) error
		nest = func(ctx context.Context, depth int) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("flush %d failed", depth) })
				if depth == 0 {
					async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
					return nil
				}
				return nest(ctx, depth-1)
			})
		}
		ctx, check := asynctest.Root(ctx)
		text := panicOrError(func() error { return nest(ctx, depth) }).Error()
		require.Equal(t, 1, strings.Count(text, errPlanted.Error()+"\n"), text)
		require.Equal(t, 1, strings.Count(text, "failed"), text)
		require.Contains(t, text, "flush 0 failed")
		require.Equal(t, depth, strings.Count(check().Error(), "failed"))
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

// TestWhatCameBesideASecondPanicIsKept, though it says that it was stopped because of
// the first, and a panic is never attached to itself.
func TestWhatCameBesideASecondPanicIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return io.ErrNoProgress })
					<-ctx.Done()
					panic(io.ErrShortWrite)
				})
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		})
		for _, want := range []error{errPlanted, io.ErrShortWrite, io.ErrNoProgress} {
			require.ErrorIs(t, everythingIn(err), want)
		}
		require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
		require.Equal(t, 1, strings.Count(err.Error(), io.ErrNoProgress.Error()), err)
	})
}

func oneAndTwo(<-chan struct{}) iter.Seq[int] { return slices.Values([]int{1, 2}) }

// secondPanics returns what is done with one and two: two closes second, and
// panics when it is told to stop; one returns once two has begun.
func secondPanics(second chan struct{}) func(ctx context.Context, i int) (int, error) {
	return func(ctx context.Context, i int) (int, error) {
		if i == 1 {
			<-second
			return 1, nil
		}
		close(second)
		<-ctx.Done()
		panic(io.EOF)
	}
}

// TestALoopsPanicGoesOnAsItWas, as that of a body, whatever its items do: one
// that panics when it is told to stop comes second, and is told to the root.
func TestALoopsPanicGoesOnAsItWas(t *testing.T) {
	for name, tc := range map[string]struct {
		items func(second <-chan struct{}) iter.Seq[int]
		left  func()
		gets  any
	}{
		"by its body": {oneAndTwo, func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"by its sequence": {func(second <-chan struct{}) iter.Seq[int] {
			return func(yield func(int) bool) {
				_ = yield(1) && yield(2)
				<-second
				panic(http.ErrAbortHandler)
			}
		}, func() {}, http.ErrAbortHandler},
		"by break": {oneAndTwo, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root, check := asynctest.Root(context.Background())
			second := make(chan struct{})
			value := recovered(func() {
				for range async.Map(root, tc.items(second), secondPanics(second)) {
					if tc.left == nil {
						break
					}
					tc.left()
				}
			})
			if lost := check(); tc.gets != nil {
				require.Equal(t, tc.gets, value)
				require.ErrorIs(t, lost, io.EOF)
			} else {
				require.ErrorIs(t, value.(error), io.EOF)
				require.NoError(t, lost)
			}
		})
	}
}

// TestAPanicErrorThatLeavesALoopGoesOnAsItWas: what was beside it the root is told.
func TestAPanicErrorThatLeavesALoopGoesOnAsItWas(t *testing.T) {
	ctx, check := asynctest.Root(t.Context())
	_, first := async.Start(ctx, func(context.Context) error { panic(errPlanted) }).Await(ctx, 0)
	value := recovered(func() {
		for range async.Map(ctx, oneAndTwo(nil), secondPanics(make(chan struct{}))) {
			panic(first)
		}
	})
	require.Equal(t, any(first), value)
	require.ErrorIs(t, check(), io.EOF)
}

// TestALoopThatIsLeftByGoexitRaisesWhatPanicked, as a Scope does.
func TestALoopThatIsLeftByGoexitRaisesWhatPanicked(t *testing.T) {
	ctx := asynctest.Context(t)
	got := make(chan any)
	go func() {
		defer func() { got <- recover() }()
		for range async.Map(ctx, oneAndTwo(nil), secondPanics(make(chan struct{}))) {
			runtime.Goexit()
		}
	}()
	require.ErrorIs(t, (<-got).(error), io.EOF)
}
