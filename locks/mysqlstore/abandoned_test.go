package mysqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestATakeThatNobodyWaitsForAnyMoreIsNotDoneLate: the server goes on waiting for the row when
// its client has gone, for as long as the pool of the user says, which is 50 s by default.
func TestATakeThatNobodyWaitsForAnyMoreIsNotDoneLate(t *testing.T) {
	url := database(t)
	s := made(t, pool(t, url, func(c *mysql.Config) { c.Params["innodb_lock_wait_timeout"] = "600" }))
	take(t, s, "k", request("a"))
	_, err := s.Release(t.Context(), name("k"), locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	tx, err := plainPool(t, url).Begin()
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.Exec("UPDATE lk_resource SET updated_by = x'61'")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, name("k"), []locks.Request{request("b")})
		gone <- err
	}()
	waiting(t, url)
	cancel()
	require.ErrorIs(t, <-gone, locks.ErrUnavailable)
	db := asRoot(t, url)
	defer func() { _ = db.Close() }()
	for n := 1; n > 0; time.Sleep(200 * time.Millisecond) { // until it waits no more, or the test times out
		require.NoError(t, t.Context().Err())
		require.NoError(t, db.QueryRow("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&n))
	}
	require.NoError(t, tx.Rollback())
	record, err := s.Get(t.Context(), name("k"))
	require.NoError(t, err)
	require.Empty(t, record.Holders)
}
