package async_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

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
