//go:build unix

package sqlstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pooler in transaction mode: statements that were prepared are those of another connection.
func TestAPoolerInTransactionModeIsNamed(t *testing.T) {
	for _, code := range []string{"42P05", "26000"} {
		err := postgresError(t.Context(), &pgconn.PgError{Code: code}, false)
		require.ErrorContains(t, err, "default_query_exec_mode=exec")
		require.ErrorAs(t, err, new(*pgconn.PgError))
	}
}

// A connection that listens hears of a notice of its own; one that a pooler has given another server
// connection since does not. Then whoever waits is told so once, and looks by itself.
func TestWhereNoNoticesComeThoseWhoWaitLookByThemselves(t *testing.T) {
	all, pool, url := pgStores(t, 1)
	s := all[0]
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	db := &server{pool: pool, d: s.db.dialect()}
	assert.False(t, hears(t.Context(), s, db, c), "it listens to nothing")
	_, err = c.Exec(t.Context(), "LISTEN tq_wake")
	require.NoError(t, err)
	for !hears(t.Context(), s, db, c) { // a slow machine may need longer than hearTime, now and then
		require.NoError(t, t.Context().Err())
	}

	seen := s.hints.seen("q")
	s.hints.deaf(errDeaf)
	require.ErrorIs(t, s.Wait(t.Context(), "q", seen, time.Now().Add(time.Hour)), errDeaf)
	s.hints.deaf(errDeaf) // the next time that it is tried
	require.NoError(t, s.hints.untold())
	go poll(t.Context(), s)
	for range 3 {
		require.NoError(t, s.Wait(t.Context(), "q", s.hints.seen("q"), time.Now().Add(time.Hour)))
	}
}
