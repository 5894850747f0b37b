package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
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

// TestAGrantThatCameTooLateDoesNotUndoALaterResize has the answer to a request that changed
// the size come after its own end: what is asked for in its place changes nothing.
func TestAGrantThatCameTooLateDoesNotUndoALaterResize(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const lease = time.Second
		_, err := w.other.CreateSemaphore(t.Context(), "s", 2)
		require.NoError(t, err)
		answer := make(chan struct{})
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.Late = answer
			}
			return f
		})
		time.AfterFunc(trusted(lease), func() {
			_, err := w.other.CreateSemaphore(t.Context(), "s", 3)
			require.NoError(t, err)
			close(answer)
		})
		_, err = w.m.Acquire(t.Context(), "s", locks.Permit(5), locks.Resize(), locks.LeaseFor(lease))
		require.ErrorIs(t, err, locks.ErrConflict)
		r, err := w.other.Get(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, 3, r.Size)
	})
}
