package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

// TestTheConnectionBesideThePoolIsMadeAsThoseOfThePool: by functions of the pool a user may
// choose the schema. Another program keeps its locks in the usual one.
func TestTheConnectionBesideThePoolIsMadeAsThoseOfThePool(t *testing.T) {
	url := database(t)
	_, err := pool(t, url, func(*pgxpool.Config) {}).Exec(t.Context(), "CREATE SCHEMA mine")
	require.NoError(t, err)
	opened(t, url)
	choose := func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET search_path TO mine")
		return err
	}
	for function, change := range map[string]func(c *pgxpool.Config){
		"AfterConnect": func(c *pgxpool.Config) { c.AfterConnect = choose },
		"PrepareConn": func(c *pgxpool.Config) {
			c.PrepareConn = func(ctx context.Context, c *pgx.Conn) (bool, error) { return true, choose(ctx, c) }
		},
		"BeforeAcquire": func(c *pgxpool.Config) {
			//lint:ignore SA1019 pools of older programs have it
			c.BeforeAcquire = func(ctx context.Context, c *pgx.Conn) bool { return choose(ctx, c) == nil }
		},
	} {
		t.Run(function, func(t *testing.T) {
			p := pool(t, url, change)
			s := made(t, p)
			require.True(t, take(t, s, function, request("id"))[0].Granted)
			c, err := p.Acquire(t.Context())
			require.NoError(t, err)
			defer c.Release()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 2 {
				results, err := s.Renew(ctx, []locks.Renewal{{Name: name(function), Ref: locks.Ref{ID: "id"}, Lease: time.Hour}})
				require.NoError(t, err)
				require.Equal(t, locks.Extended, results[0].Verdict)
			}
		})
	}
}
