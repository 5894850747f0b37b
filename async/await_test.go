package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
)

func TestAwaitReturnsOnTimeThoughTheHandlerIgnoresItsContext(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		f := async.Execute(ctx, stubborn(time.Hour, 1, nil))
		v, err := f.Await(ctx, time.Second)
		tookAbout(t, time.Second, start)
		require.Zero(t, v)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		v, err = f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, v, "a later wait is given the real outcome")
		tookAbout(t, time.Hour, start)
	})
}

func TestATieBetweenResultAndDeadlineIsTheResult(t *testing.T) {
	for range 100 {
		awaitTie(t, func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Await(ctx, time.Second) })
		awaitTie(t, func(ctx context.Context, f *async.Future[int]) (int, error) {
			r := async.AwaitAll(ctx, time.Second, f)
			return r[0].Value, r[0].Err
		})
	}
}

func awaitTie(t *testing.T, await func(ctx context.Context, f *async.Future[int]) (int, error)) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		v, err := await(ctx, async.Execute(ctx, stubborn(time.Second, 7, nil)))
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// TestASettledResultBeatsAContextThatIsCancelledAfterIt: who cancels has seen
// the future settled, so a wait that is parked meanwhile must not tell the
// cancellation.
func TestASettledResultBeatsAContextThatIsCancelledAfterIt(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 2000 {
		f := async.Execute(root, func(context.Context) (int, error) {
			runtime.Gosched()
			return 7, nil
		})
		ctx, cancel := context.WithCancel(root)
		go func() {
			<-f.Done()
			cancel()
		}()
		wait := f.Wait
		if i%2 == 0 {
			wait = func(ctx context.Context) (int, error) { return f.Await(ctx, 0) }
		}
		v, err := wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	}
}

func TestASettledResultBeatsADoneContext(t *testing.T) {
	root := asynctest.Context(t)
	done, cancel := context.WithCancelCause(root)
	cancel(errors.New("too late"))
	own := errors.New("own")
	for range 1000 {
		for _, f := range []*async.Future[int]{
			async.Completed(7, own),
			async.Execute(root, func(context.Context) (int, error) { return 7, own }),
		} {
			<-f.Done()
			for _, timeout := range []time.Duration{-1, 0, 1, time.Hour} {
				v, err := f.Await(done, timeout)
				require.Equal(t, 7, v)
				require.Equal(t, own, err)
				r := async.AwaitAll(done, timeout, f)
				require.Equal(t, []async.Result[int]{{Index: 0, Value: 7, Err: own}}, r)
			}
			v, err := f.Wait(done)
			require.Equal(t, 7, v)
			require.Equal(t, own, err)
		}
	}
}

func TestAwaitTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, handler time.Duration
		took             time.Duration
		expires          bool
	}{
		"zero sets no limit":                     {0, 1000 * time.Hour, 1000 * time.Hour, false},
		"a limit that is not reached":            {time.Hour, time.Second, time.Second, false},
		"a limit that passes":                    {time.Second, time.Hour, time.Second, true},
		"the shortest":                           {1, time.Hour, 1, true},
		"negative has expired, looks and aborts": {-1, time.Hour, 0, true},
		"very negative":                          {-1 << 63, time.Hour, 0, true},
		"the longest":                            {1<<63 - 1, time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				cause := make(chan error, 1)
				f := async.Execute(ctx, stubborn(test.handler, 7, nil), async.OnAbort(func(_ context.Context, why error) error {
					cause <- why
					return nil
				}))
				synctest.Wait() // the handler runs: its hook is due at an abort
				v, err := f.Await(ctx, test.timeout)
				tookAbout(t, test.took, start)
				if !test.expires {
					require.NoError(t, err)
					require.Equal(t, 7, v)
					return
				}
				require.Zero(t, v)
				var te *async.TimeoutError
				require.ErrorAs(t, err, &te)
				require.Equal(t, test.timeout, te.Limit)
				require.Same(t, te, <-cause, "it aborted")
				v, err = f.Await(ctx, 0)
				require.NoError(t, err)
				require.Equal(t, 7, v)
			})
		})
	}
}

func TestWaitLeavesTheTaskAlone(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			time.Sleep(time.Hour)
			return 7, ctx.Err()
		}, async.OnAbort(func(context.Context, error) error { return errors.New("nobody asked for it") }))
		for range 3 {
			brief, cancel := context.WithTimeout(ctx, time.Minute)
			v, err := f.Wait(brief)
			cancel()
			require.Zero(t, v)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, f.IsRunning())
		}
		v, err := f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

func TestAnyNumberMayAwaitAnyNumberOfTimes(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		f := async.Execute(ctx, stubborn(time.Minute, 7, nil))
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if i%2 == 0 { // gives up, comes back
					brief, cancel := context.WithTimeout(ctx, time.Duration(i+1)*time.Millisecond)
					defer cancel()
					_, err := f.Wait(brief)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				for range 3 {
					v, err := f.Await(ctx, time.Hour)
					require.NoError(t, err)
					require.Equal(t, 7, v)
				}
			})
		}
		all.Wait()
	})
}

func TestAWaitAfterOneThatGaveUpIsNotDisturbedByIt(t *testing.T) {
	root := asynctest.Context(t)
	require.NoError(t, async.Scope(root, func(ctx context.Context) error {
		for i := range 2000 {
			f, p := async.NewPromise[int](ctx)
			go func() { p.Resolve(i) }()
			if i%2 == 0 {
				_, _ = f.Await(ctx, 1) // a nanosecond: expires about when the promise is resolved
			} else {
				brief, cancel := context.WithCancel(ctx)
				go cancel()
				_, _ = f.Wait(brief)
				cancel()
			}
			start, q := async.NewPromise[int](ctx)
			go func() { q.Resolve(-i) }()
			v, err := start.Await(ctx, 0)
			if err != nil || v != -i {
				return fmt.Errorf("%d: %v, %w", i, v, err)
			}
			// An expired Await cancels the promise, which settles with that.
			if v, err := f.Wait(ctx); i%2 == 0 && errors.Is(err, context.DeadlineExceeded) {
				continue
			} else if err != nil || v != i {
				return fmt.Errorf("%d: %v, %w", i, v, err)
			}
		}
		return nil
	}))
}

func TestAnExpiredAwaitWaitsForGrace(t *testing.T) {
	own := &awaitError{4}
	for name, test := range map[string]struct {
		grace   time.Duration
		handler func(context.Context) (int, error)
		took    time.Duration
		check   func(t *testing.T, v int, err, cause error)
	}{
		"a value within it wins": {2 * time.Second, obedient(time.Second, 7, nil), 2 * time.Second, func(t *testing.T, v int, err, _ error) {
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}},
		"an error within it wins, with the cause": {2 * time.Second, obedient(time.Second, 0, error(own)), 2 * time.Second, func(t *testing.T, _ int, err, cause error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.ErrorIs(t, err, cause)
		}},
		"beyond it is too late": {2 * time.Second, obedient(3*time.Second, 7, nil), 3 * time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
		"none by default": {0, obedient(0, 7, nil), time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
		"negative is none": {-time.Second, obedient(time.Second, 7, nil), time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				var cause error
				f := async.Execute(ctx, func(ctx context.Context) (int, error) {
					v, err := test.handler(ctx)
					return v, err
				}, async.Grace(test.grace), async.OnAbort(func(_ context.Context, why error) error {
					cause = why
					return nil
				}))
				v, err := f.Await(ctx, time.Second)
				tookAbout(t, test.took, start)
				synctest.Wait()
				test.check(t, v, err, cause)
				_, _ = f.Wait(ctx)
			})
		})
	}
}

func TestGraceAlsoHoldsWhenTheContextEnds(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		f := async.Execute(ctx, obedient(time.Second, 7, nil), async.Grace(2*time.Second))
		v, err := f.Await(brief, 0)
		require.NoError(t, err)
		require.Equal(t, 7, v)
		tookAbout(t, 2*time.Second, start)
	})
}

func TestGracesOfAwaitAllRunSideBySide(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		all := []*async.Future[int]{
			async.Execute(ctx, obedient(3*time.Second, 0, nil), async.Grace(4*time.Second)),
			async.Execute(ctx, obedient(5*time.Second, 1, nil), async.Grace(2*time.Second)),
			async.Execute(ctx, obedient(1*time.Second, 2, nil), async.Grace(2*time.Second)),
			async.Execute(ctx, obedient(4*time.Second, 3, nil), async.Grace(3*time.Second)),
			async.Execute(ctx, stubborn(time.Hour, 4, nil)),
		}
		got := async.AwaitAll(ctx, 10*time.Second, all...)
		tookAbout(t, 13*time.Second, start)
		for i, within := range []bool{true, false, true, false, false} {
			require.Equal(t, i, got[i].Index)
			if within {
				require.NoError(t, got[i].Err)
				require.Equal(t, i, got[i].Value)
			} else {
				require.ErrorIs(t, got[i].Err, context.DeadlineExceeded)
			}
		}
		async.AwaitAll(ctx, 0, all...)
	})
}

func TestAwaitDoesNotWaitForTheAbortHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f := async.Execute(ctx, obedient(0, 7, nil), async.OnAbort(func(context.Context, error) error {
				time.Sleep(3 * time.Second)
				return nil
			}))
			_, err := f.Await(ctx, time.Second)
			require.Error(t, err)
			tookAbout(t, time.Second, start)
			return nil
		}))
		tookAbout(t, 4*time.Second, start) // the scope does
	})
}
