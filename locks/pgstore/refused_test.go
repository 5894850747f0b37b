package pgstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
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

// TestAPoolerInTransactionModeIsTold names the setting that helps: the statements which the
// driver prepares are those of another connection the next time.
func TestAPoolerInTransactionModeIsTold(t *testing.T) {
	for _, code := range []string{"42P05", "26000"} {
		err := failure(t.Context(), &pgconn.PgError{Code: code})
		require.ErrorIs(t, err, locks.ErrValidation)
		require.ErrorContains(t, err, "default_query_exec_mode=exec")
	}
}

// TestNotificationsThatNeverComeAreNoticed: through a pooler that gives each transaction another
// connection LISTEN succeeds, and nothing arrives. Those who wait then ask again by themselves.
func TestNotificationsThatNeverComeAreNoticed(t *testing.T) {
	url := database(t)
	server := servers.Shared(t, servers.Postgres)
	proxy := lockstest.NewProxy(t, server.Network, server.Address)
	proxy.Drop(func(answer []byte) bool { return answer[0] == 'A' })
	s := opened(t, strings.Replace(url, server.Address, proxy.Address, 1))
	hints, stop := s.Listen(name("k"))
	defer stop()
	for range 5 {
		select {
		case <-hints:
		case <-time.After(time.Minute):
			require.Fail(t, "no hint came")
		}
	}
}
