package async_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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
				require.Equal(t, 1, strings.Count(text, "this panic has waited 10s for the end of "), text)
				require.Equal(t, 1, strings.Count(text, "plantedPanic("), text)
				require.Contains(t, text, test.left)
			})
		})
	}
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
