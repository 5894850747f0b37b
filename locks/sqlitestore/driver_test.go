package sqlitestore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// counting is a driver that counts its connections.
type counting struct {
	driver.Driver
	opened atomic.Int64
}

func (d *counting) Open(name string) (driver.Conn, error) {
	d.opened.Add(1)
	return d.Driver.Open(name)
}

// TestTheFileIsWatchedByTheDriverOfTheUser: two libraries in one process drop each other's locks
// on the file.
func TestTheFileIsWatchedByTheDriverOfTheUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	d := &counting{Driver: pool(t, path).Driver()}
	db := sql.OpenDB(beside{d, path})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	s, err := New(t.Context(), db)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.EqualValues(t, 1, d.opened.Load())
	_, stop := s.Listen(locks.Name{Tenant: "t", Key: "k"})
	defer stop()
	require.Eventually(t, func() bool { return d.opened.Load() == 2 }, time.Minute, time.Millisecond)
}

func TestErrorsOfOtherDriversAreKnownByTheirTexts(t *testing.T) {
	for _, text := range []string{"database is locked", "sqlite3: database table is locked: lk_entry"} {
		require.True(t, busy(fmt.Errorf("begin: %w", errors.New(text))), text)
	}
	require.ErrorIs(t, failure(errors.New("sqlite3: attempt to write a readonly database")), locks.ErrValidation)
	require.ErrorIs(t, failure(errors.New("disk I/O error")), locks.ErrUnavailable)
	require.False(t, busy(nil))
}
