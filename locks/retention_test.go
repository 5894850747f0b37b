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
