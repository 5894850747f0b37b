package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

func TestARequestThatWaitsDoesNotUndoALaterResize(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "s", locks.Permits(4, 4))
		defer free()
		size := func() int {
			r, err := w.other.Get(t.Context(), "s")
			require.NoError(t, err)
			return r.Size
		}
		done := make(chan error, 1)
		go func() { done <- w.m.WithPermits(t.Context(), "s", 5, 5, nothing, locks.Resize()) }()
		synctest.Wait()
		require.Equal(t, 5, size())
		_, err := w.other.CreateSemaphore(t.Context(), "s", 3)
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		require.Equal(t, 3, size())
		require.ErrorIs(t, <-done, locks.ErrConflict)
	})
}
