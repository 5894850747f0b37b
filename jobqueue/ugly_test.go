package jobqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Jobs may be taken wherever there is a scope, and that scope settles them: each
// case takes one job in a scope that ends well and one in a scope that fails.
func TestEveryKindOfScopeSettles(t *testing.T) {
	type taker func(ctx context.Context) error
	for name, run := range map[string]func(ctx context.Context, well, badly taker){
		"root tasks": func(_ context.Context, well, badly taker) {
			_, err := async.Start(context.Background(), well).Await(context.Background(), 0)
			assert.NoError(t, err)
			_, err = async.Start(context.Background(), badly).Await(context.Background(), 0)
			assert.ErrorIs(t, err, errBoom)
		},
		"detached tasks": func(ctx context.Context, well, badly taker) {
			done := make(chan struct{}, 2)
			for _, f := range []taker{well, func(ctx context.Context) error { _ = async.Scope(ctx, badly); return nil }} {
				async.Detach(ctx, "taker", func(ctx context.Context) error {
					async.OnExit(ctx, func(context.Context, error) error { done <- struct{}{}; return nil })
					return f(ctx)
				})
				<-done
			}
		},
		"exit hooks": func(ctx context.Context, well, badly taker) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(ctx context.Context, _ error) error { return badly(ctx) })
				async.OnExit(ctx, func(ctx context.Context, _ error) error { return well(ctx) })
				return nil
			})
			assert.ErrorIs(t, err, errBoom)
		},
		"abort hooks": func(ctx context.Context, well, badly taker) {
			for _, f := range []taker{well, badly} {
				_, _ = async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil },
					async.OnAbort(func(ctx context.Context, _ error) error { return f(ctx) })).Await(ctx, 1)
				synctest.Wait()
			}
		},
		"shields": func(ctx context.Context, well, badly taker) {
			dead, cancel := context.WithCancel(ctx)
			cancel()
			assert.NoError(t, async.Shield(dead, time.Second, well))
			assert.ErrorIs(t, async.Shield(dead, time.Second, badly), errBoom)
		},
		"items": func(ctx context.Context, well, badly taker) {
			results, _ := async.ForkJoin(ctx, []taker{well, badly}, func(ctx context.Context, f taker) (int, error) {
				return 0, f(ctx)
			}).Await(ctx, 0)
			assert.Len(t, results, 2)
		},
		"items under a limit": func(ctx context.Context, well, badly taker) {
			err := async.ForEach(ctx, slices.Values([]taker{well, badly}), func(ctx context.Context, f taker) error {
				return f(ctx)
			}, async.Limit(1), async.ItemTimeout(time.Hour))
			assert.ErrorIs(t, err, errBoom)
		},
		"contenders": func(ctx context.Context, well, badly taker) {
			contender := func(f taker) func(ctx context.Context) (int, error) {
				return func(ctx context.Context) (int, error) { return 0, f(ctx) }
			}
			_, err := async.Any(ctx, contender(badly)).Await(ctx, 0)
			assert.ErrorIs(t, err, errBoom)
			_, err = async.Any(ctx, contender(well)).Await(ctx, 0)
			assert.NoError(t, err)
		},
		"contexts without cancellation": func(ctx context.Context, well, badly taker) {
			_ = async.Scope(ctx, func(ctx context.Context) error { return well(context.WithoutCancel(ctx)) })
			_ = async.Scope(ctx, func(ctx context.Context) error { return badly(context.WithoutCancel(ctx)) })
		},
		"polls": func(ctx context.Context, well, badly taker) {
			for _, f := range []taker{well, badly} {
				_, _ = async.Repeat(ctx, async.Every(time.Second), f, async.Attempts(1)).Await(ctx, 0)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(1, 2)
				take := func(ctx context.Context) error {
					_, err := q.Take(ctx, 1)
					assert.NoError(t, err)
					return err
				}
				_ = async.Scope(t.Context(), func(ctx context.Context) error {
					run(ctx, take, func(ctx context.Context) error { return errors.Join(take(ctx), errBoom) })
					assert.Len(t, q.Queued(), 1)
					assert.Empty(t, q.InProgress())
					return nil
				})
				s := q.Stats()
				assert.Equal(t, [2]uint64{1, 1}, [2]uint64{s.Done, s.Failed})
			})
		})
	}
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

// A job keeps what is asked of it through whatever comes between: a second run,
// failures up to the last, a close.
func TestRunAgainOutlivesTheDead(t *testing.T) {
	var dead []page
	q := jobqueue.NewKeyed(func(p page) int { return p.id }, jobqueue.WhileRunning(jobqueue.RunAgain),
		jobqueue.MaxAttempts(1, func(p page, _ error) { dead = append(dead, p) }))
	q.Add(page{1, "a"})
	_ = q.Do(t.Context(), 1, func(context.Context, []page) error {
		q.Add(page{1, "b"})
		return errBoom
	})
	assert.Equal(t, []page{{1, "a"}}, dead)
	assert.Equal(t, []page{{1, "b"}}, q.Queued(), "it is a job of its own")
	_ = q.Do(t.Context(), 1, func(context.Context, []page) error {
		q.Add(page{1, "c"})
		q.Close()
		return nil
	})
	assert.Equal(t, []page{{1, "c"}}, q.Queued(), "it was accepted before the close")
}
