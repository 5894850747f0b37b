package sqlitestore

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/fence"
)

func TestALeaseIsCheckedInATransactionOfTheUsersOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	db, err := sql.Open("sqlite", fileURL(path)+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	m, err := locks.New(s, locks.Lease(10*time.Minute))
	require.NoError(t, err)
	same := func(h *locks.Hold) error {
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback()) }()
		return fence.Same(t.Context(), fence.Tx(tx), h)
	}
	for name, kind := range map[string][]locks.LockOption{"mutex": nil, "pool": {locks.Permit(3)}, "rw": {locks.Write()}} {
		h, err := m.Acquire(t.Context(), name, kind...)
		require.NoError(t, err)
		require.NoError(t, same(h), name)
		require.NoError(t, m.ReleaseVersion(t.Context(), name, h.Version())) // behind its back
		var stale *fence.StaleError
		require.ErrorAs(t, same(h), &stale, name)
		assert.Equal(t, name, stale.Key)
		require.Error(t, h.Release(t.Context()))
	}
	h, err := m.Acquire(t.Context(), "little", locks.LeaseFor(time.Hour), locks.NoRenew())
	require.NoError(t, err)
	s.file.now = func() int64 { return time.Now().Add(50 * time.Minute).UnixMicro() }
	require.ErrorContains(t, same(h), "too little")
	require.NoError(t, h.Release(t.Context()))
	require.ErrorIs(t, same(h), locks.ErrReleased)
	require.NoError(t, m.With(t.Context(), "k", func(context.Context) error { return nil }))
}
