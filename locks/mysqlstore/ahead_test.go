package mysqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestATokenFromTheFutureKeepsNoLeaseFromEnding(t *testing.T) {
	url := database(t)
	f := lockstest.NewFixture(t, func(t testing.TB) locks.Store { return opened(t, url) })
	f.Ahead(func(name locks.Name, token int64) {
		_, err := opened(t, url).db.db.ExecContext(t.Context(), "INSERT INTO lk_floor (bucket, fence) VALUES (?, ?)", book.Bucket(name), token)
		require.NoError(t, err)
	})
}

func TestARequestOfAClockThatWasSetBackIsForgotten(t *testing.T) {
	server := servers.MariaDB(t)
	server.FakeClock()
	lockstest.NewFixture(t, func(t testing.TB) locks.Store { return opened(t, server.URL) }).SetBack(server.SetClock)
}
