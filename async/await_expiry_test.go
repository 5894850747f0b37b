package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAScopeJoinsWhatItsAwaitGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ended := false
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			_, err := async.Execute(ctx, func(context.Context) (int, error) {
				time.Sleep(time.Hour)
				ended = true
				return 0, errors.New("after the fact")
			}).Await(ctx, time.Second)
			require.Error(t, err)
			return nil
		})
		require.NoError(t, err, "the owner was told: no failure of the scope")
		require.True(t, ended)
		tookAbout(t, time.Hour, start)
	})
}

func TestFiftyWaitersThatExpireTogetherAbortOnce(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var hooks, fromHook atomic.Int32
		var cause error
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			cause = context.Cause(ctx)
			time.Sleep(time.Minute)
			return 5, nil
		}, async.OnAbort(func(_ context.Context, cause error) error {
			hooks.Add(1)
			if _, ok := cause.(*async.TimeoutError); ok {
				fromHook.Add(1)
			}
			return nil
		}))
		start := time.Now()
		errs := make([]error, 50)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = f.Await(ctx, time.Second) })
		}
		all.Wait()
		tookAbout(t, time.Second, start)
		v, err := f.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 5, v)
		require.EqualValues(t, 1, hooks.Load())
		require.EqualValues(t, 1, fromHook.Load())

		mine := 0
		for _, err := range errs {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if err == cause {
				mine++
			}
		}
		require.Equal(t, 1, mine, "the first to expire aborted for all, and identity tells who it was")
	})
}

func TestTheFirstToExpireAbortsForAll(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			return 0, context.Cause(ctx)
		})
		start := time.Now()
		var patient error
		var done sync.WaitGroup
		done.Go(func() { _, patient = f.Await(ctx, time.Hour) })
		_, hasty := f.Await(ctx, time.Second)
		require.Error(t, hasty)
		done.Wait()
		tookAbout(t, time.Second, start)
		require.ErrorIs(t, patient, hasty, "the patient one is given the real outcome: aborted by the other")
	})
}

func TestAwaitingAgainAfterATimeoutGivesTheRealOutcome(t *testing.T) {
	own := &awaitError{3}
	for name, test := range map[string]struct {
		handler func(context.Context) (int, error)
		check   func(t *testing.T, v int, err error, told error)
	}{
		"a value": {stubborn(time.Minute, 7, nil), func(t *testing.T, v int, err, _ error) {
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}},
		"the handler's own error and the cause": {stubborn(time.Minute, 0, error(own)), func(t *testing.T, _ int, err, told error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.Same(t, own, mine)
			require.ErrorIs(t, err, told)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}},
		"a wrapped error of its own": {stubborn(time.Minute, 0, fmt.Errorf("wrapped: %w", own)), func(t *testing.T, _ int, err, told error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.ErrorIs(t, err, told)
		}},
		"an echo of the context": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			return 0, ctx.Err()
		}, func(t *testing.T, _ int, err, told error) {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, told)
		}},
		"an echo of the cause, wrapped": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			return 0, fmt.Errorf("fetching: %w", context.Cause(ctx))
		}, func(t *testing.T, _ int, err, told error) {
			require.ErrorIs(t, err, told)
			require.ErrorContains(t, err, "fetching")
		}},
		"a panic": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			panic("late")
		}, func(t *testing.T, _ int, err, _ error) {
			var p *async.PanicError
			require.ErrorAs(t, err, &p)
			require.Equal(t, "late", p.Value)
		}},
		"Goexit": {func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			runtime.Goexit()
			return 0, nil
		}, func(t *testing.T, _ int, err, told error) {
			require.ErrorIs(t, err, async.ErrGoexit)
			require.ErrorIs(t, err, told)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				f := async.Execute(ctx, test.handler)
				_, told := f.Await(ctx, time.Second)
				require.ErrorIs(t, told, context.DeadlineExceeded)
				for range 3 {
					v, err := f.Await(ctx, 0)
					test.check(t, v, err, told)
					v, err = f.Wait(ctx)
					test.check(t, v, err, told)
					r := async.AwaitAll(ctx, 0, f)
					test.check(t, r[0].Value, r[0].Err, told)
					v, err, ok := f.Result()
					require.True(t, ok)
					test.check(t, v, err, told)
				}
			})
		})
	}
}

func TestATimeoutErrorSaysWhoseLimitItWas(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var cause error
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			untilStopped(ctx)
			cause = context.Cause(ctx)
			require.Equal(t, context.Canceled, ctx.Err())
			return 0, ctx.Err()
		}, async.Name("fetch"))
		_, err := f.Await(ctx, 1500*time.Millisecond)
		_, _ = f.Wait(ctx)

		te, ok := err.(*async.TimeoutError)
		require.True(t, ok, "%T", err)
		require.Equal(t, "fetch", te.Task)
		require.Equal(t, 1500*time.Millisecond, te.Limit)
		require.InDelta(t, 1500*time.Millisecond, te.Waited, float64(time.Microsecond))
		for _, part := range []string{"context deadline exceeded", "fetch", "1.5s"} {
			require.ErrorContains(t, err, part)
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.True(t, te.Timeout())
		require.True(t, os.IsTimeout(err))
		var ne net.Error
		if errors.As(err, &ne) {
			require.True(t, ne.Timeout())
		}
		require.True(t, cause == err, "the cause in the handler is the very error that Await returned")
	})
}

// TestATimeoutErrorSaysHowLongWasWaitedThoughTheContextEndsToo at that instant.
func TestATimeoutErrorSaysHowLongWasWaitedThoughTheContextEndsToo(t *testing.T) {
	for range 2000 / raceFactor {
		inBubble(t, func(_ *testing.T, ctx context.Context) {
			_ = async.Scope(ctx, func(outer context.Context) error {
				f := async.Execute(outer, obedient(0, 0, context.Canceled))
				ctx, cancel := context.WithTimeout(outer, time.Second)
				defer cancel()
				_, err := f.Await(ctx, time.Second)
				if expired := (*async.TimeoutError)(nil); errors.As(err, &expired) {
					require.GreaterOrEqual(t, expired.Waited, time.Second)
				}
				return nil
			})
		})
	}
}

func TestATimeoutOfSomethingInsideIsNotMyTimeout(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var inner error
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			_, inner = async.Execute(ctx, obedient(0, 1, nil)).Await(ctx, time.Second)
			return 0, fmt.Errorf("inside: %w", inner)
		})
		_, err := f.Await(ctx, time.Hour)
		require.ErrorIs(t, err, inner)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, err != inner)
	})
}

func TestTheTimeoutOfATaskIsItsOwn(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, start.Add(time.Second), deadline)
			untilStopped(ctx)
			require.Equal(t, context.DeadlineExceeded, ctx.Err())
			return 0, context.Cause(ctx)
		}, async.Timeout(time.Second), async.Name("brief"))
		_, err := f.Await(ctx, 0)
		tookAbout(t, time.Second, start)
		var te *async.TimeoutError
		require.ErrorAs(t, err, &te)
		require.Equal(t, "brief", te.Task)
		require.Equal(t, time.Second, te.Limit)
	})
}
