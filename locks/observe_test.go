package locks_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// The grant is revoked before its caller, who is busy, has heard of it.
func TestALossIsToldAfterTheGrant(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var told []locks.EventKind
		var mu sync.Mutex
		goOn := make(chan struct{})
		m := w.manager(w.store, locks.Observe(func(e locks.Event) {
			mu.Lock()
			told = append(told, e.Kind)
			mu.Unlock()
			if e.Kind == locks.EventWaiting {
				<-goOn
			}
		}))
		first, err := w.other.Acquire(t.Context(), "k")
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			h, err := m.Acquire(t.Context(), "k")
			assert.NoError(t, err)
			assert.ErrorAs(t, h.Err(), new(*locks.LostError))
		}()
		synctest.Wait()
		require.NoError(t, first.Release(t.Context()))
		synctest.Wait()
		n, err := w.other.Revoke(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		time.Sleep(leaseTime)
		close(goOn)
		<-done
		told = slices.DeleteFunc(told, func(k locks.EventKind) bool { return k == locks.EventRenewed })
		assert.Equal(t, []locks.EventKind{locks.EventWaiting, locks.EventGranted, locks.EventLost, locks.EventEnded}, told)
	})
}

// An observer holds no lock of a hold: it may give back what was lost.
func TestAnObserverMayReleaseALockThatItIsToldTheLossOf(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var told []locks.EventKind
		held := make(chan *locks.Hold, 1)
		m := w.manager(w.store, locks.Observe(func(e locks.Event) {
			mu.Lock()
			told = append(told, e.Kind)
			mu.Unlock()
			if e.Kind == locks.EventLost {
				assert.Equal(t, e.Err, (<-held).Release(t.Context()))
			}
		}))
		h, err := m.Acquire(t.Context(), "k", locks.NoRenew())
		require.NoError(t, err)
		held <- h
		time.Sleep(leaseTime)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []locks.EventKind{locks.EventGranted, locks.EventLost, locks.EventEnded}, told)
	})
}
