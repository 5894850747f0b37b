package asynctest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errPlanted = errors.New("planted")

// A recorder is a test that ends when it is told to, and keeps what it was
// failed with.
type recorder struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
	errors   []error
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)        { r.errors = append(r.errors, args[0].(error)) }

// verdict runs test with a context of [asynctest.Context], ends it as package
// testing does, and returns what it was failed with.
func verdict(t *testing.T, test func(ctx context.Context)) error {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{TB: t, ctx: ctx}
	test(asynctest.Context(r))
	cancel()
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	return errors.Join(r.errors...)
}

// inAndOutside runs f in a synctest bubble and outside all of them.
func inAndOutside(t *testing.T, f func(t *testing.T)) {
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, f) })
	t.Run("outside", f)
}

func TestContextPassesATestThatLeftNothing(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		require.NoError(t, verdict(t, func(ctx context.Context) {
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return nil })
				return nil
			}))
			async.Detach(ctx, "ends by itself", func(context.Context) error { return nil })
			v, err := async.Execute(ctx, func(context.Context) (int, error) { return 1, nil }).Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 1, v)
		}))
	})
}

func TestContextFailsATestThatLeftATask(t *testing.T) {
	// Only in a bubble, because the check is patient.
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		err := verdict(t, func(ctx context.Context) {
			async.Start(ctx, func(context.Context) error { <-stop; return nil }, async.Name("left behind"))
		})
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "left behind", left.Left[0].Task)
		close(stop)
	})
}

func TestContextIsAScope(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		var hooked, served bool
		require.NoError(t, verdict(t, func(ctx context.Context) {
			async.OnExit(ctx, func(_ context.Context, outcome error) error { hooked = served; return nil })
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); served = true; return nil })
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, async.Daemon())
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		}), "the end of the test stops it, which is no failure")
		require.True(t, hooked, "hooks run after the tasks")
	})
}

func TestContextFailsATestInWhichATaskHasFailed(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		for name, test := range map[string]func(ctx context.Context){
			"Go":    func(ctx context.Context) { async.Go(ctx, func(context.Context) error { return errPlanted }) },
			"Start": func(ctx context.Context) { async.Start(ctx, func(context.Context) error { return errPlanted }) },
			"panic": func(ctx context.Context) { async.Go(ctx, func(context.Context) error { panic(errPlanted) }) },
			"group": func(ctx context.Context) {
				require.NoError(t, async.NewGroup(ctx).Go(func(context.Context) error { return errPlanted }))
			},
			"exit hook": func(ctx context.Context) {
				async.OnExit(ctx, func(context.Context, error) error { return errPlanted })
			},
		} {
			require.ErrorIs(t, verdict(t, test), errPlanted, name)
		}
		require.NoError(t, verdict(t, func(ctx context.Context) {
			_, err := async.Start(ctx, func(context.Context) error { return errPlanted }).Await(ctx, 0)
			require.ErrorIs(t, err, errPlanted)
		}), "it was given to the test")
	})
}

// TestContextNamesWhatATestHasLeft, with its stack.
func TestContextNamesWhatATestHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		err := verdict(t, func(ctx context.Context) {
			async.Go(ctx, func(context.Context) error { leftHere(stop); return nil }, async.Name("left behind"))
		})
		require.ErrorContains(t, err, "left behind")
		require.ErrorContains(t, err, "leftHere")
		close(stop)
	})
}

//go:noinline
func leftHere(stop chan struct{}) { <-stop }

func TestLiveLeavesOutTheScopeOfTheTest(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		require.Empty(t, asynctest.Live(ctx))
		stop := make(chan struct{})
		f := async.Start(ctx, func(context.Context) error { <-stop; return nil }, async.Name("in the scope"))
		async.Detach(ctx, "detached", func(context.Context) error { <-stop; return nil })
		require.ElementsMatch(t, []string{"detached", "in the scope"}, asynctest.Live(ctx))
		close(stop)
		_, err := f.Join(ctx)
		require.NoError(t, err)
		require.NoError(t, async.Shutdown(ctx))
		require.Empty(t, asynctest.Live(ctx))
	})
}

// TestShutdownSeesWhatIsInTheScopeOfTheTest, as it sees root tasks in a program.
func TestShutdownSeesWhatIsInTheScopeOfTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		start := time.Now()
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
		require.NoError(t, async.Shutdown(ctx))
		require.Equal(t, time.Minute, time.Since(start), "it was waited for")
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			require.Equal(t, async.ErrShutdown, context.Cause(ctx))
			return nil
		})
		done, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, async.Shutdown(done))
		require.NoError(t, ctx.Err(), "the test goes on")
	})
}

func TestContextFailsATestWhoseDetachedTaskFailed(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		require.ErrorIs(t, verdict(t, func(ctx context.Context) {
			async.Detach(ctx, "fails", func(context.Context) error { return errPlanted })
		}), errPlanted)
	})
}

func TestContextFailsATestThatLostAnError(t *testing.T) {
	inAndOutside(t, func(t *testing.T) {
		require.ErrorIs(t, verdict(t, func(ctx context.Context) {
			var kept context.Context
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { kept = ctx; return nil }))
			async.OnExit(kept, func(context.Context, error) error { return errPlanted }) // too late, so nobody is told
		}), errPlanted)
	})
}

// Several things may go wrong in one test: each is told.
func TestContextTellsAllThatWentWrong(t *testing.T) {
	errOther := errors.New("another")
	for name, test := range map[string]func(ctx context.Context){
		"a detached task has failed, and an error is lost": func(ctx context.Context) {
			async.Detach(ctx, "fails", func(context.Context) error { return errOther })
			var kept context.Context
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { kept = ctx; return nil }))
			async.OnExit(kept, func(context.Context, error) error { return errPlanted })
		},
		"a task has failed beside one that tells of stragglers": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted })
			async.Go(ctx, func(context.Context) error { return errors.Join(errOther, &async.StragglerError{Scope: "gone"}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAndOutside(t, func(t *testing.T) {
				err := verdict(t, test)
				require.ErrorIs(t, err, errPlanted)
				require.ErrorIs(t, err, errOther)
			})
		})
	}
}

// TestContextIsAChildOfTheTests and a root of its own.
func TestContextIsAChildOfTheTests(t *testing.T) {
	type key struct{}
	outer, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	ctx, check := asynctest.Root(outer)
	other, checkOther := asynctest.Root(outer)
	require.Equal(t, "value", ctx.Value(key{}))
	stop := make(chan struct{})
	f := async.Start(ctx, func(ctx context.Context) error { <-stop; <-ctx.Done(); return context.Cause(ctx) }, async.Name("mine"))
	require.Equal(t, []string{"mine"}, asynctest.Live(ctx))
	require.Empty(t, asynctest.Live(other), "tests share no root")
	close(stop)
	cancel(errPlanted)
	_, err := f.Wait(context.WithoutCancel(ctx))
	require.ErrorIs(t, err, errPlanted)
	require.Empty(t, asynctest.Live(ctx))
	require.NoError(t, check())
	require.NoError(t, checkOther())
}

// TestAnErrorThatNobodyWasGivenIsLost: it is when the future is collected, so
// the collector has to be asked.
func TestAnErrorThatNobodyWasGivenIsLost(t *testing.T) {
	ctx, check := asynctest.Root(t.Context())
	async.Start(ctx, func(context.Context) error { return errPlanted })
	for len(asynctest.Live(ctx)) > 0 {
		time.Sleep(time.Millisecond)
	}
	var err error
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC()
		err = check() // told on another goroutine, which may take its time
	}
	require.ErrorIs(t, err, errPlanted)
}

func ExampleRoot() {
	ctx, check := asynctest.Root(context.Background())
	async.Detach(ctx, "upload", func(context.Context) error { return errors.New("disk full") })
	fmt.Println(check())
	// Output: disk full
}
