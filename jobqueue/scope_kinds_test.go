package jobqueue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
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
