package locks_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

// A world is a store in memory with faults, in a bubble where time is virtual.
type world struct {
	*testing.T
	store  *lockstest.Faulty
	m      *locks.Manager // of one process
	other  *locks.Manager // of another
	events *events
}

// in runs a test in a bubble.
func in(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		base := memstore.New()
		w := &world{T: t, store: lockstest.NewFaulty(base), events: &events{}}
		w.m = w.manager(w.store, locks.Owner("one"), locks.Observe(w.events.add))
		w.other = w.manager(lockstest.NewFaulty(base), locks.Owner("other"))
		f(t, w)
		synctest.Wait()
	})
}

func (w *world) manager(s locks.Store, options ...locks.Option) *locks.Manager {
	w.Helper()
	m, err := locks.New(s, options...)
	require.NoError(w, err)
	return m
}

// free says whether another process is granted the lock at once.
func (w *world) free(key string, options ...locks.LockOption) bool {
	w.Helper()
	h, err := w.other.Acquire(w.Context(), key, append(options, locks.NoWait())...)
	if err == nil {
		require.NoError(w, h.Release(w.Context()))
		return true
	}
	require.ErrorIs(w, err, locks.ErrNotGranted)
	return false
}

// mustFree expects that another process is granted the lock at once.
func (w *world) mustFree(key string, options ...locks.LockOption) {
	w.Helper()
	require.True(w, w.free(key, options...), "%s is held", key)
}

const leaseTime = 15 * time.Second
