package locks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestRecordsAreMadeReadListedAndDeleted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		r, err := w.m.CreateMutex(t.Context(), "b", locks.Data("x"), locks.LeaseFor(time.Minute), locks.DeleteOnRelease(), locks.LockDelay(time.Second))
		require.NoError(t, err)
		assert.Equal(t, locks.Mutex, r.Kind)
		assert.Equal(t, "x", *r.Data)
		assert.Equal(t, time.Minute, r.Lease)
		assert.True(t, r.DeleteOnRelease)
		assert.True(t, r.Fair)
		assert.Equal(t, "one", r.CreatedBy)
		assert.NotEmpty(t, r.Version)
		s, err := w.m.CreateSemaphore(t.Context(), "a", 7, locks.Fair(false))
		require.NoError(t, err)
		assert.Equal(t, 7, s.Size)
		assert.False(t, s.Fair)
		s, err = w.m.CreateSemaphore(t.Context(), "a", 9)
		require.NoError(t, err)
		assert.Equal(t, 9, s.Size, "resized")

		list, err := w.m.List(t.Context(), "", 10)
		require.NoError(t, err)
		require.Len(t, list, 2)
		assert.Equal(t, "a", list[0].Key)
		list, err = w.m.List(t.Context(), "a", 10)
		require.NoError(t, err)
		require.Len(t, list, 1)

		free := held(t, w, "a", locks.Permit(9))
		holders, err := w.m.Holders(t.Context(), "a")
		require.NoError(t, err)
		require.Len(t, holders, 1)
		assert.Equal(t, "other", holders[0].Owner)
		assert.Empty(t, holders[0].ID, "an ID gives power over the lease")
		require.ErrorIs(t, w.m.Delete(t.Context(), "a", ""), locks.ErrConflict)
		free()
		require.ErrorIs(t, w.m.Delete(t.Context(), "a", "another"), locks.ErrConflict)
		require.NoError(t, w.m.Delete(t.Context(), "a", s.Version))
		require.ErrorIs(t, w.m.Delete(t.Context(), "a", ""), locks.ErrNotFound)
		_, err = w.m.Get(t.Context(), "a")
		require.ErrorIs(t, err, locks.ErrNotFound)
	})
}

func TestALeaseIsRenewedAndGivenBackByItsVersion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k", locks.NoRenew())
		require.NoError(t, err)
		version := h.Version()
		for range 10 {
			time.Sleep(10 * time.Second)
			g, err := w.other.Heartbeat(t.Context(), "k", version, locks.RotateVersion(), locks.Data("beats"))
			require.NoError(t, err)
			assert.NotEqual(t, version, g.Version)
			assert.Equal(t, h.Token(), g.Fence)
			version = g.Version
		}
		g, err := w.other.Heartbeat(t.Context(), "k", version, locks.LeaseFor(time.Hour))
		require.NoError(t, err)
		assert.Equal(t, version, g.Version)
		assert.Equal(t, time.Hour, g.Lease)
		_, err = w.other.Heartbeat(t.Context(), "k", "another")
		require.ErrorIs(t, err, locks.ErrNotOwner)
		_, err = w.other.Heartbeat(t.Context(), "nothing", version)
		require.ErrorIs(t, err, locks.ErrNotFound)
		require.ErrorIs(t, w.other.ReleaseVersion(t.Context(), "k", "another"), locks.ErrNotOwner)
		require.ErrorIs(t, w.other.ReleaseVersion(t.Context(), "nothing", version), locks.ErrNotFound)
		require.NoError(t, w.other.ReleaseVersion(t.Context(), "k", version, locks.Data("bye")))
		require.ErrorIs(t, w.other.ReleaseVersion(t.Context(), "k", version), locks.ErrNotOwner)
		w.mustFree("k")
		r, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Equal(t, "bye", *r.Data)

		h, err = w.m.Acquire(t.Context(), "k", locks.NoRenew())
		require.NoError(t, err)
		_, err = w.other.Revoke(t.Context(), "k")
		require.NoError(t, err)
		_, err = w.other.Heartbeat(t.Context(), "k", h.Version())
		require.ErrorIs(t, err, locks.ErrNotOwner)
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestACommandThatTheStoreDoesNotAnswerIsNotKnown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, fault := range []lockstest.Fault{{Fail: lockstest.ErrFault}, {Silent: true}, {SilentAfter: true}} {
			w.store.Inject(func(lockstest.Call) lockstest.Fault { return fault })
			for i, change := range []func() error{
				func() error { _, err := w.m.CreateMutex(t.Context(), "k"); return err },
				func() error { return w.m.Delete(t.Context(), "k", "") },
				func() error { _, err := w.m.Revoke(t.Context(), "k"); return err },
				func() error { _, err := w.m.Heartbeat(t.Context(), "k", "v"); return err },
				func() error { return w.m.ReleaseVersion(t.Context(), "k", "v") },
			} {
				err := change()
				require.ErrorIs(t, err, locks.ErrUnavailable, "%d", i)
				require.ErrorIs(t, err, locks.ErrUnknownOutcome, "%d", i)
			}
			for _, look := range []func() error{
				func() error { _, err := w.m.Get(t.Context(), "k"); return err },
				func() error { _, err := w.m.List(t.Context(), "", 1); return err },
			} {
				err := look()
				require.ErrorIs(t, err, locks.ErrUnavailable)
				require.NotErrorIs(t, err, locks.ErrUnknownOutcome)
			}
			w.store.Inject(nil)
			_, err := w.m.CreateMutex(t.Context(), "k")
			require.NoError(t, err)
		}
	})
}

func TestSecondAnswersThatAreTooFewAreNoAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.manager(short{w.store})
		_, err := m.Acquire(t.Context(), "k", locks.NoWait())
		require.ErrorIs(t, err, locks.ErrUnavailable)
		_, err = m.Heartbeat(t.Context(), "k", "v")
		require.ErrorIs(t, err, locks.ErrUnavailable)
	})
}

// short is a store with a fault: it answers with too little.
type short struct{ locks.Store }

func (s short) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (locks.Turn, error) {
	turn, err := s.Store.Acquire(ctx, name, requests)
	turn.Answers = nil
	return turn, err
}

func (s short) Renew(context.Context, []locks.Renewal) ([]locks.RenewResult, error) { return nil, nil }

func TestAStoreThatPanicsLosesTheLockAndHangsNobody(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 3 {
				async.Go(ctx, func(ctx context.Context) error {
					err := w.m.With(ctx, "k", nothing)
					assert.ErrorIs(t, err, locks.ErrUnavailable, fmt.Sprint(i))
					return nil
				})
			}
			synctest.Wait()
			fail(w, lockstest.Acquire, lockstest.Fault{Do: func() { panic("a fault of the store") }})
			return nil
		}))
		w.store.Inject(nil)
		free()
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
	})
}
