package async_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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
