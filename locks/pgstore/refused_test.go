package pgstore

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// TestWhatTheServerWillNeverDoIsInvalid: to ask again does not help.
func TestWhatTheServerWillNeverDoIsInvalid(t *testing.T) {
	url := database(t)
	opened(t, url)
	p := pool(t, url, func(*pgxpool.Config) {})
	_, err := p.Exec(t.Context(), "CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
	require.NoError(t, err)
	s := made(t, p)
	q := pool(t, url, func(c *pgxpool.Config) { c.ConnConfig.User, c.ConnConfig.Password = "stranger", "stranger" })
	_, err = New(t.Context(), q)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.ErrorContains(t, err, "permission denied")
	_, err = s.Acquire(context.Background(), name("k"), []locks.Request{request("a")})
	require.NoError(t, err)
	for _, wrong := range []string{
		strings.Replace(url, servers.Password, "another", 1), strings.Replace(url, "/db_", "/nosuch_", 1),
	} {
		_, err := locks.Open(t.Context(), wrong)
		require.ErrorIs(t, err, locks.ErrValidation)
		require.NotErrorIs(t, err, locks.ErrUnavailable)
	}
}
