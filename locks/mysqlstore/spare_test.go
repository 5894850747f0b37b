package mysqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
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

// A call that renews long leases may take long, and has no short ones lost.
func TestARenewalThatIsSlowHoldsUpNoOther(t *testing.T) {
	db := pool(t, database(t), func(*mysql.Config) {})
	db.SetMaxOpenConns(leastShared)
	s := made(t, db)
	require.True(t, take(t, s, "mutex", request("mutex"))[0].Granted)
	s.db.spare.turn <- struct{}{} // the other uses it
	defer func() { <-s.db.spare.turn }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	mutex := locks.Renewal{Name: name("mutex"), Ref: locks.Ref{ID: "mutex"}, Lease: time.Hour}
	results, err := s.Renew(ctx, []locks.Renewal{mutex, mutex})
	require.NoError(t, err)
	require.Equal(t, locks.Extended, results[0].Verdict)
}

// A connector has connections fail as one does whose server hangs up in the middle of it.
type badConnector struct{ driver.Connector }

func (badConnector) Connect(context.Context) (driver.Conn, error) { return nil, driver.ErrBadConn }
func (badConnector) Driver() driver.Driver                        { return nil }

func TestARenewalFailsWhenTheServerHangsUp(t *testing.T) {
	db := sql.OpenDB(badConnector{})
	defer func() { require.NoError(t, db.Close()) }()
	ctx := context.WithValue(t.Context(), renewing{}, true)
	b := &backend{db: db, spare: spare{turn: make(chan struct{}, 1)}}
	_, _, err := b.begin(ctx, nil)
	require.ErrorIs(t, err, driver.ErrBadConn)
	b.closed.Store(true)
	_, _, err = b.begin(ctx, nil)
	require.ErrorIs(t, err, locks.ErrClosed, "nobody would give the connection back")
	require.Empty(t, b.spare.turn)
}
