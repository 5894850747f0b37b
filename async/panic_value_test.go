package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
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
