package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/service"
)

// A resource is opened before those behind it start, and closed after they have drained: what they
// give to it as they drain is done.
func TestAResourceOutlivesThoseThatUseIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var lines *batch.Batch[string]
		var written []string
		var order []string
		resource := service.Resource("journal", func(ctx context.Context) error {
			time.Sleep(time.Second)
			order = append(order, "open")
			async.OnExit(ctx, func(_ context.Context, outcome error) error {
				order = append(order, "closed")
				return outcome
			})
			lines = batch.New(ctx, func(_ context.Context, some []string) error {
				written = append(written, some...)
				return nil
			}, batch.Age(time.Hour))
			return nil
		})
		time.AfterFunc(time.Minute, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{resource, {
			Name: "server",
			Run: func(ctx context.Context) error {
				order = append(order, "serves")
				require.NoError(t, lines.Add(ctx, "before"))
				<-service.Draining(ctx)
				return async.Sleep(ctx, 10*time.Second)
			},
			Drain: func(ctx context.Context) error {
				time.Sleep(5 * time.Second)
				return lines.Add(ctx, "accepted before the signal")
			},
		}}))
		assert.Equal(t, []string{"before", "accepted before the signal"}, written)
		assert.Equal(t, []string{"open", "serves", "closed"}, order)
	})
}

// An error of open is one of the service, and nothing behind it is started.
func TestAResourceThatCannotBeOpened(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			service.Resource("store", func(context.Context) error { return errPlanted }),
			{Name: "server", Run: func(context.Context) error { t.Error("it was started"); return nil }},
		})
		require.EqualError(t, err, "service store: planted")
	})
}

// A failure of what open has started ends the others.
func TestAFailureInAResourceEndsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		var drained atomic.Bool
		err := service.Run(ctx, []service.Service{
			service.Resource("store", func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					time.Sleep(time.Minute)
					return errPlanted
				})
				return nil
			}),
			{Name: "server", Run: await, Drain: func(context.Context) error { drained.Store(true); return errPlanted }},
		})
		require.ErrorContains(t, err, "service store: planted")
		assert.True(t, drained.Load())
	})
}

// Level 2 cancels what a resource has started; its hooks have their time all the same.
func TestLevelTwoCancelsAResource(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var flushed atomic.Bool
		time.AfterFunc(time.Minute, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{
			service.Resource("store", func(ctx context.Context) error {
				async.OnExit(ctx, func(ctx context.Context, outcome error) error {
					assert.ErrorIs(t, outcome, errStop)
					assert.NoError(t, ctx.Err())
					flushed.Store(true)
					return nil
				})
				return nil
			}),
			{Name: "server", Run: await, Drain: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		}, service.Grace(time.Second))
		var timeout *async.TimeoutError
		require.True(t, errors.As(err, &timeout), "%v", err)
		assert.True(t, flushed.Load())
	})
}

// A resource that is being opened when the program is told to stop is cancelled, as it has nothing to drain.
func TestAResourceIsStoppedWhileItIsOpened(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		time.AfterFunc(time.Minute, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			service.Resource("store", func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }),
		}))
		synctest.Wait()
	})
}

// A resource with Restart is opened again when what it had has failed.
func TestAResourceIsOpenedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		opened := 0
		r := service.Resource("store", func(ctx context.Context) error {
			if opened++; opened == 1 {
				async.Go(ctx, func(ctx context.Context) error {
					time.Sleep(time.Minute)
					return errPlanted
				})
			}
			return nil
		})
		r.Options = []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})}
		time.AfterFunc(time.Hour, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{r}))
		assert.Equal(t, 2, opened)
	})
}

func TestAResourceWithoutAFunction(t *testing.T) {
	require.PanicsWithValue(t, "service: Resource with a nil function: pass what opens store", func() { service.Resource("store", nil) })
}
