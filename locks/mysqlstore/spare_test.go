package mysqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestLeasesAreRenewedWhileTheUserKeepsAllConnectionsOfThePool: else they are lost though the
// database is well.
func TestLeasesAreRenewedWhileTheUserKeepsAllConnectionsOfThePool(t *testing.T) {
	url := database(t)
	db := pool(t, url, func(*mysql.Config) {})
	db.SetMaxOpenConns(leastShared)
	s := made(t, db)
	permit := request("permit")
	permit.Kind, permit.Size = locks.Semaphore, 2
	require.True(t, take(t, s, "mutex", request("mutex"))[0].Granted)
	require.True(t, take(t, s, "pool", permit)[0].Granted)
	for range leastShared - 1 {
		c, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	mutex := locks.Renewal{Name: name("mutex"), Ref: locks.Ref{ID: "mutex"}, Lease: time.Hour}
	of := locks.Renewal{Name: name("pool"), Ref: locks.Ref{ID: "permit"}, Lease: time.Hour}
	extend := func(renewals ...locks.Renewal) {
		results, err := s.Renew(ctx, renewals)
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, locks.Extended, r.Verdict)
		}
	}
	extend(mutex)
	extend(of)
	extend(mutex, of)
	require.NoError(t, s.db.spare.conn.Close()) // the server has ended it, and there is no other
	c, err := db.Conn(ctx)
	require.NoError(t, err, "what was reserved is of the pool again")
	require.NoError(t, c.Close())
	extend(mutex)
}
