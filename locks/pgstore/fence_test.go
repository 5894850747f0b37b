package pgstore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/fence"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestALeaseIsCheckedInATransactionOfTheUsersOwn(t *testing.T) {
	url := servers.Postgres(t).URL
	s := opened(t, url)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	defer pool.Close()
	m, err := locks.New(s, locks.Lease(10*time.Minute))
	require.NoError(t, err)
	other, err := locks.New(opened(t, url))
	require.NoError(t, err)
	query := func(tx pgx.Tx) fence.Query {
		return func(ctx context.Context, q string, args ...any) fence.Row { return tx.QueryRow(ctx, q, args...) }
	}
	for name, kind := range map[string][]locks.LockOption{"mutex": nil, "pool": {locks.Permit(1)}, "rw": {locks.Write()}} {
		h, err := m.Acquire(t.Context(), name, kind...)
		require.NoError(t, err)
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, fence.Same(t.Context(), query(tx), h), name)

		// The lock is taken away while the transaction lasts: the next is granted it after
		// the commit.
		var committed atomic.Bool
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				r, err := other.Get(ctx, name)
				if err != nil {
					return err
				}
				_ = other.ReleaseVersion(ctx, name, r.Holders[0].Version)
				return other.With(ctx, name, func(context.Context) error {
					assert.True(t, committed.Load(), "granted before the commit")
					return nil
				}, kind...)
			})
			require.Eventually(t, func() bool { // the release waits for the row
				var n int
				err := pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&n)
				return err == nil && n > 0
			}, time.Minute, 5*time.Millisecond)
			committed.Store(true)
			return tx.Commit(ctx)
		}))
		tx, err = pool.Begin(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, fence.Same(t.Context(), query(tx), h), fence.ErrStale, name)
		require.NoError(t, tx.Rollback(t.Context()))
		require.Error(t, h.Release(t.Context()))
	}
}
