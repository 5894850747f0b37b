package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestABodyOfManyLocksSaysOnceThatItGetsOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		err := w.m.WithAll(t.Context(), []string{"a", "b", "c"}, func(ctx context.Context) error {
			for range 60 {
				time.Sleep(time.Second)
				require.NoError(t, ctx.Err())
				locks.From(ctx).Progress()
			}
			<-ctx.Done() // it hangs
			return nil
		}, locks.RequireProgress(2*time.Second))
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostStalled, lost.Reason)
	})
}

func TestACallThatWaitsForTheRestOfItsLocksDoesNotStall(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "b")
		time.AfterFunc(4*leaseTime, free)
		begin, ran := time.Now(), false
		err := w.m.WithAll(t.Context(), []string{"a", "b"}, func(ctx context.Context) error {
			ran = true
			assert.Equal(t, 4*leaseTime, time.Since(begin))
			begin = time.Now()
			<-ctx.Done() // it hangs: the time has begun with the body
			return nil
		}, locks.RequireProgress(2*time.Second))
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostStalled, lost.Reason)
		assert.True(t, ran)
		assert.Less(t, time.Since(begin), 2*leaseTime)
	})
}

// A body that is slow to say that it gets on has no lease renewed that is not due.
func TestProgressRenewsNothingThatWasNotRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			for range 4 {
				time.Sleep(time.Second)
				locks.From(ctx).Progress()
			}
			assert.Empty(t, w.store.Calls(lockstest.Renew), "none is due")
			time.Sleep(leaseTime / 2)
			assert.Empty(t, w.store.Calls(lockstest.Renew), "it says nothing")
			locks.From(ctx).Progress()
			time.Sleep(time.Millisecond)
			assert.Len(t, w.store.Calls(lockstest.Renew), 1, "at once")
			return nil
		}, locks.RequireProgress(500*time.Millisecond)))
	})
}

// TestExtendTellsTheDataOnce has somebody else give the lock another text after Extend has
// told that of the holder: the next renewal does not bring the old one back.
func TestExtendTellsTheDataOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, h.SetData("mine"))
		require.NoError(t, h.Extend(t.Context(), time.Minute))
		_, err = w.other.Heartbeat(t.Context(), "k", h.Version(), locks.Data("theirs"))
		require.NoError(t, err)
		time.Sleep(leaseTime)
		require.NotEmpty(t, w.store.Calls(lockstest.Renew))
		require.NoError(t, h.Release(t.Context()))
		r, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Equal(t, "theirs", *r.Data)
	})
}
