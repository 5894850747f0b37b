//go:build unix

package sqlstore

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// TestProcessesThatStartAtOnceOnANewDatabaseAllBegin has all of them see that there are no tables before the
// first one makes them.
func TestProcessesThatStartAtOnceOnANewDatabaseAllBegin(t *testing.T) {
	for range 3 {
		url := emptyDatabase(t)
		c, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		_, err = c.Exec(t.Context(), "SELECT pg_advisory_lock(hashtext('tq_schema'))")
		require.NoError(t, err)
		errs := make(chan error, 6)
		for range cap(errs) {
			go func() {
				s, err := taskqueue.Open(t.Context(), url)
				if err == nil {
					err = s.Close()
				}
				errs <- err
			}()
		}
		require.Eventually(t, func() bool {
			waiting := 0
			err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&waiting)
			return err == nil && waiting == cap(errs)
		}, patience, 5*time.Millisecond)
		require.NoError(t, c.Close(t.Context())) // gives the lock back
		for range cap(errs) {
			assert.NoError(t, <-errs)
		}
	}
}
