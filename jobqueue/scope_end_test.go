package jobqueue_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// Whatever a scope does but end well, its jobs are back in their places when it
// is over.
func TestJobsGoBackToTheirPlaces(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"error": func(context.Context) error { return errBoom },
		"task fails": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errBoom })
			return nil
		},
		"panic":  func(context.Context) error { panic("boom") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
		"later exit hook fails": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return errBoom })
			return nil
		},
		"later exit hook panics": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { panic("boom") })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := queueOf(1, 2, 3, 4)
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = async.Scope(context.Background(), func(ctx context.Context) error {
					jobs, err := q.Take(ctx, 2)
					assert.NoError(t, err)
					assert.Equal(t, []int{1, 2}, jobs)
					q.Add(5)
					return body(ctx)
				})
			}()
			<-done
			assert.Equal(t, []int{1, 2, 3, 4, 5}, q.Queued())
			assert.Empty(t, q.InProgress())
		})
	}
}

// A scope that was told to stop has not ended well although its body says so.
func TestACancelledScopeGivesItsJobsBack(t *testing.T) {
	q := queueOf(1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	err := q.Do(ctx, 1, func(context.Context, []int) error { cancel(); return nil })
	assert.NoError(t, err, "nothing was skipped")
	assert.Equal(t, []int{1, 2}, q.Queued())
}

// Who is left behind by DetachAfter keeps its jobs until it ends: they are in its
// hands.
func TestStragglersKeepTheirJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOf(1)
		ctx, cancel := context.WithCancel(t.Context())
		err := async.Scope(ctx, func(ctx context.Context) error {
			_, err := q.Take(ctx, 1)
			require.NoError(t, err)
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
			cancel()
			return nil
		}, async.DetachAfter(time.Second))
		assert.ErrorAs(t, err, new(*async.StragglerError))
		assert.Equal(t, []int{1}, q.InProgress())
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		assert.Equal(t, []int{1}, q.Queued())
	})
}

// One that fails has failed, although it is left behind, or fails more often than
// anybody can list.
func TestAFailureIsAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		body func(ctx context.Context) error
		opts []async.ScopeOption
	}{
		"left behind": {func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
			return errBoom
		}, []async.ScopeOption{async.DetachAfter(time.Second)}},
		"many times": {func(ctx context.Context) error {
			for i := range 100 {
				async.Go(ctx, func(context.Context) error { return fmt.Errorf("%w %d", errBoom, i) })
			}
			return nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(1)
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					_, err := q.Take(ctx, 1)
					require.NoError(t, err)
					return c.body(ctx)
				}, c.opts...)
				assert.Error(t, err)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				assert.Equal(t, uint64(1), q.Stats().Failed)
				assert.Equal(t, []int{1}, q.Queued())
			})
		})
	}
}

// A failure that a scope was told to carry on after is no failure of the scope.
func TestAFailureThatIsCarriedOnAfterSettlesWell(t *testing.T) {
	q := queueOf(1)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		_, err := q.Take(ctx, 1)
		async.Go(ctx, func(context.Context) error { return errBoom })
		return err
	}, async.OnFailure(func(error) error { return nil })))
	assert.Equal(t, uint64(1), q.Stats().Done)
}

// A failed future that nobody awaited fails its scope, and so its jobs.
func TestAnUnclaimedFailureFailsTheJobs(t *testing.T) {
	q := queueOf(1)
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		_, err := q.Take(ctx, 1)
		async.Start(ctx, func(context.Context) error { return errBoom })
		return err
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{1}, q.Queued())
	assert.Equal(t, uint64(1), q.Stats().Failed)
}

// The end of a scope settles in turn with its hooks: those that were registered
// before the first Take see it settled, and are too late to change it.
func TestHooksRegisteredBeforeSeeTheJobsSettled(t *testing.T) {
	q := queueOf(1)
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error {
			assert.Empty(t, q.InProgress())
			return errBoom
		})
		_, err := q.Take(ctx, 1)
		async.OnExit(ctx, func(ctx context.Context, _ error) error {
			assert.Equal(t, []int{1}, q.InProgress())
			return nil
		})
		return err
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, uint64(1), q.Stats().Done)
}

// A hook that is registered before the first Take may itself take: the scope
// settles that, too.
func TestAHookMayTakeForItsScope(t *testing.T) {
	q := queueOf(1, 2)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := ctx
		async.OnExit(ctx, func(context.Context, error) error {
			_, err := q.Take(context.WithoutCancel(scope), 1)
			return err
		})
		_, err := q.Take(ctx, 1)
		return err
	}))
	assert.Equal(t, uint64(2), q.Stats().Done)
	assert.Empty(t, q.InProgress())
}
