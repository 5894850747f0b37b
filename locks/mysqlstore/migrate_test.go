package mysqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestAMigrationThatIsCutShortKeepsNobodyElseWaiting: its lock is one of the session, and the
// pool of the user keeps the connection. lk_resource is locked so that the migration waits.
func TestAMigrationThatIsCutShortKeepsNobodyElseWaiting(t *testing.T) {
	url := database(t)
	opened(t, url)
	db, mine := plainPool(t, url), plainPool(t, url)
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	for _, statement := range []string{"DELETE FROM lk_schema", "LOCK TABLES lk_resource WRITE"} {
		_, err := c.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = New(ctx, mine)
	require.ErrorIs(t, err, locks.ErrUnavailable)
	_, err = c.ExecContext(t.Context(), "UNLOCK TABLES")
	require.NoError(t, err)
	var got int
	for got == 0 { // the server notices the end of a connection a little later
		require.NoError(t, c.QueryRowContext(t.Context(), "SELECT get_lock('ambit locks schema', 1)").Scan(&got))
	}
}
