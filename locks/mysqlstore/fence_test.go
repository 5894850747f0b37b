package mysqlstore

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/fence"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestALeaseIsCheckedInATransactionOfTheUsersOwn(t *testing.T) {
	url := servers.MariaDB(t).URL
	m, err := locks.New(opened(t, url), locks.Lease(10*time.Minute))
	require.NoError(t, err)
	other, err := locks.New(opened(t, url))
	require.NoError(t, err)
	db := plainPool(t, url)
	db.SetMaxOpenConns(4)
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelReadCommitted} {
		for name, kind := range map[string][]locks.LockOption{"mutex": nil, "pool": {locks.Permit(1)}, "rw": {locks.Write()}} {
			h, err := m.Acquire(t.Context(), name, kind...)
			require.NoError(t, err)
			begin := func() *sql.Tx {
				tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
				require.NoError(t, err)
				var n int
				require.NoError(t, tx.QueryRow("SELECT count(*) FROM lk_entry").Scan(&n)) // it sees what is there now
				return tx
			}
			old := begin()
			tx := begin()
			require.NoError(t, fence.Same(t.Context(), fence.Tx(tx), h), name)

			var committed atomic.Bool
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					_ = other.ReleaseVersion(ctx, name, h.Version())
					return other.With(ctx, name, func(context.Context) error {
						assert.True(t, committed.Load(), "granted before the commit")
						return nil
					}, kind...)
				})
				require.Eventually(t, func() bool { // the release waits for the row
					var n int
					err := db.QueryRow("SELECT count(*) FROM information_schema.processlist WHERE id <> connection_id() AND info LIKE '%lk_resource%FOR UPDATE'").Scan(&n)
					return err == nil && n > 0
				}, time.Minute, 5*time.Millisecond)
				committed.Store(true)
				return tx.Commit()
			}))
			require.ErrorIs(t, fence.Same(t.Context(), fence.Tx(old), h), fence.ErrStale, name)
			require.NoError(t, old.Rollback())
			require.Error(t, h.Release(t.Context()))
		}
	}
}
