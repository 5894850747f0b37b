package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

func TestTheRecordOfALockThatNobodyUsesGoesAfterADay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "used", nothing))
		require.NoError(t, w.m.With(t.Context(), "idle", nothing))
		time.Sleep(23 * time.Hour)
		require.NoError(t, w.m.With(t.Context(), "used", nothing))
		time.Sleep(time.Hour)
		n, err := w.m.Purge(t.Context(), 10)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		_, err = w.m.Get(t.Context(), "idle")
		require.ErrorIs(t, err, locks.ErrNotFound)
		_, err = w.m.Get(t.Context(), "used")
		require.NoError(t, err)

		_, err = w.m.Purge(t.Context(), 0)
		require.ErrorIs(t, err, locks.ErrValidation)
		_, err = locks.New(w.store, locks.Retention(-1))
		require.ErrorIs(t, err, locks.ErrValidation)
		m, err := locks.New(w.store, locks.Retention(0))
		require.NoError(t, err)
		require.NoError(t, m.With(t.Context(), "gone", nothing))
		_, err = m.Get(t.Context(), "gone")
		require.ErrorIs(t, err, locks.ErrNotFound)
	})
}

func TestWithRetention0TheRecordOfOneWhoHasDiedGoesSoonAndWhatWasMadeByHandStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.manager(w.store, locks.Retention(0))
		_, err := m.Acquire(t.Context(), "dead", locks.NoRenew())
		require.NoError(t, err)
		_, err = m.CreateSemaphore(t.Context(), "pool", 3)
		require.NoError(t, err)
		require.NoError(t, m.WithPermit(t.Context(), "pool", 5, nothing))
		require.NoError(t, m.WithPermit(t.Context(), "sized", 2, nothing, locks.Resize()))
		time.Sleep(3 * time.Minute)
		for range 2 { // the first finds that its lease has ended
			_, err = m.Purge(t.Context(), 10)
			require.NoError(t, err)
			time.Sleep(3 * time.Minute)
		}
		left, err := m.List(t.Context(), "", 10)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.Equal(t, "pool", left[0].Key)
		require.Equal(t, 3, left[0].Size)
	})
}

func TestARetentionOfAlmostNothingIsNotForEver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.manager(w.store, locks.Retention(time.Nanosecond))
		require.NoError(t, m.With(t.Context(), "k", nothing))
		time.Sleep(time.Second)
		n, err := m.Purge(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}
