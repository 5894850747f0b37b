package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestLeasesAreRenewedWhileTheUserKeepsAllConnectionsOfThePool: else they are lost though the
// database is well.
func TestLeasesAreRenewedWhileTheUserKeepsAllConnectionsOfThePool(t *testing.T) {
	p := pool(t, database(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	s := made(t, p)
	permit := request("permit")
	permit.Kind, permit.Size = locks.Semaphore, 2
	require.True(t, take(t, s, "mutex", request("mutex"))[0].Granted)
	require.True(t, take(t, s, "pool", permit)[0].Granted)
	for range 2 {
		c, err := p.Acquire(t.Context())
		require.NoError(t, err)
		defer c.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	mutex := locks.Renewal{Name: name("mutex"), Ref: locks.Ref{ID: "mutex"}, Lease: time.Hour}
	of := locks.Renewal{Name: name("pool"), Ref: locks.Ref{ID: "permit"}, Lease: time.Hour}
	for _, renewals := range [][]locks.Renewal{{mutex}, {of}, {mutex, of}} {
		results, err := s.Renew(ctx, renewals)
		require.NoError(t, err)
		for _, r := range results {
			require.Equal(t, locks.Extended, r.Verdict)
		}
	}
}
