package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// An askedError calls asked when it is asked what it wraps.
type askedError struct{ asked func() }

func (*askedError) Error() string   { return "no more" }
func (e *askedError) Unwrap() error { e.asked(); return nil }

// Who has closed the worker is still asking whether that is news to the scope when the
// last task returns. Its goroutine tells the scope then, and nobody tells the root.
func TestWhatAWorkerLeftUndoneIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, check := asynctest.Root(t.Context())
		stopped, stop := context.WithCancel(ctx)
		stop()
		end, held := make(chan struct{}), make(chan struct{})
		var asked atomic.Int32
		why := &askedError{func() {
			if asked.Add(1) == 1 {
				<-held
			}
		}}
		err := async.Scope(stopped, func(ctx context.Context) error {
			own, closeIt := context.WithCancelCause(context.WithoutCancel(ctx))
			w := scheduler.New(scheduler.Goroutines()).NewWorker(own)
			require.NoError(t, w.Post(func() { <-end }))
			require.NoError(t, w.Post(func() {}))
			synctest.Wait()
			closeIt(why)
			synctest.Wait()
			require.Equal(t, int32(1), asked.Load())
			close(end)
			return nil
		})
		require.ErrorIs(t, err, why)
		close(held)
		synctest.Wait()
		require.NoError(t, check())
	})
}
