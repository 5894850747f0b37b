package sqlitestore

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c%d#e'f.db")
	lockstest.Run(t, func(t testing.TB) locks.Store { return opened(t, path) })
}

// TestStoreOnPoolOfUser has pools of one connection, and nothing set.
func TestStoreOnPoolOfUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	lockstest.Run(t, func(t testing.TB) locks.Store {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		s, err := New(t.Context(), db)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}

func opened(t testing.TB, path string) *Store {
	t.Helper()
	s, err := locks.Open(t.Context(), "sqlite:"+path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}
