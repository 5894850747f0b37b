package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

func TestRunReturnsWhatItsScopeDoes(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		require.NoError(t, l.Run(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3*length) }))
		require.ErrorIs(t, l.Run(ctx, func(context.Context) error { return errStore }), errStore)
		assert.PanicsWithValue(t, "no", func() { _ = l.Run(ctx, func(context.Context) error { panic("no") }) })
		assert.Panics(t, func() { _ = l.Run(ctx, nil) })
		require.NoError(t, l.Err())
		require.NoError(t, l.Release(ctx))
		is(t, l.Run(ctx, func(context.Context) error { t.Error("it runs"); return nil }), lease.ErrEnded)
	})
}

func TestRunIsNoSuccessIfTheBeliefHasEndedBeforeTheWork(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"obeys":         func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"does not care": func(ctx context.Context) error { time.Sleep(length); return nil },
		"fails":         func(ctx context.Context) error { <-ctx.Done(); return errors.Join(errStore, ctx.Err()) },
		"leaves a task": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(length); return nil })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(ctx context.Context, w *world) {
				w.answers(down)
				l := w.keep("k", length)
				err := l.Run(ctx, body)
				require.ErrorIs(t, err, l.Err())
				is(t, err, lease.ErrOver)
				assert.Equal(t, name == "fails", errors.Is(err, errStore))
			})
		})
	}
}

func TestABodyThatSleptLearnsItFirst(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		err := l.Run(ctx, func(ctx context.Context) error {
			_ = ctx.Done() // so that the scope has a standard context, which reads no clock
			below, cancel := context.WithCancel(ctx)
			defer cancel()
			w.clock.Suspend(length)
			assert.ErrorIs(t, ctx.Err(), context.Canceled)
			assert.True(t, isClosed(ctx.Done()))
			assert.True(t, isClosed(below.Done()), "in the same step")
			is(t, context.Cause(below), lease.ErrOver)
			return nil
		})
		is(t, err, lease.ErrOver)
	})
}

func TestARunIsRenewedUntilItsLastTaskHasEndedAlsoWhenItsContextIsCancelled(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l := w.keep("k", length)
		stopping, stop := context.WithCancel(ctx)
		time.AfterFunc(time.Second, stop)
		err := l.Run(stopping, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(10 * length) // it cleans up
			return l.Err()
		})
		require.NoError(t, err, "nothing was lost")
		require.NoError(t, l.Release(ctx))
		assert.GreaterOrEqual(t, len(w.made()), 30)
	})
}
