package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

// atFirst has the first renewal from now on meet a fault, and returns what is closed then.
func atFirst(w *world, f lockstest.Fault) (begun chan struct{}) {
	begun = make(chan struct{})
	first := true
	w.store.Inject(func(c lockstest.Call) lockstest.Fault {
		if c.Step != lockstest.Renew || !first {
			return lockstest.Fault{}
		}
		first = false
		close(begun)
		return f
	})
	return begun
}

// A renewal that is on its way has the text from before. It must not come behind the one that
// has the next: nobody would tell the store of that once more.
func TestTheLastTextOfAHoldIsTheLastInTheStore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, h.SetData("one"))
		<-atFirst(w, lockstest.Fault{Before: time.Second})
		require.NoError(t, h.SetData("two"))
		require.NoError(t, h.Extend(t.Context(), time.Minute))
		time.Sleep(time.Minute)
		record, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		require.NotNil(t, record.Data)
		assert.Equal(t, "two", *record.Data)
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestAReleaseWaitsForAnExtensionThatIsOnItsWay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		extended := make(chan error, 1)
		begun := atFirst(w, lockstest.Fault{Before: time.Second})
		go func() { extended <- h.Extend(t.Context(), time.Minute) }()
		<-begun
		begin := time.Now()
		require.NoError(t, h.Release(t.Context()))
		assert.ErrorIs(t, <-extended, locks.ErrReleased)
		releases := w.store.Calls(lockstest.Release)
		require.Len(t, releases, 1)
		assert.Equal(t, time.Second, releases[0].At.Sub(begin), "the extension would come after it")
		w.mustFree("k")
	})
}

// A lease that is due to be renewed while an extension is on its way is renewed when that has failed.
func TestAHoldIsRenewedAfterAnExtensionThatHasFailed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		time.Sleep(leaseTime/3 - time.Second)
		atFirst(w, lockstest.Fault{Silent: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+leaseTime/30)
		defer cancel()
		require.ErrorIs(t, h.Extend(ctx, leaseTime), locks.ErrUnavailable)
		synctest.Wait()
		assert.Len(t, w.store.Calls(lockstest.Renew), 2, "it is due by now")
		time.Sleep(10 * leaseTime)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

// A loss cuts it short, and says so.
func TestAnExtensionEndsWithTheLock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k", locks.LeaseFor(time.Second))
		require.NoError(t, err)
		fail(w, lockstest.Renew, lockstest.Fault{Silent: true})
		extended := make(chan error, 1)
		go func() { extended <- h.Extend(t.Context(), time.Hour) }()
		<-h.Done()
		assert.ErrorAs(t, <-extended, new(*locks.LostError))
		w.store.Inject(nil)
	})
}
