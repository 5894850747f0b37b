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
