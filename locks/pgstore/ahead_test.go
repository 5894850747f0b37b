package pgstore

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
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
		_, err := pool(t, url, func(*pgxpool.Config) {}).Exec(t.Context(), "INSERT INTO lk_floor (bucket, fence) VALUES ($1, $2)", book.Bucket(name), token)
		require.NoError(t, err)
	})
}

func TestARequestOfAClockThatWasSetBackIsForgotten(t *testing.T) {
	server := servers.Postgres(t)
	server.FakeClock()
	lockstest.NewFixture(t, func(t testing.TB) locks.Store { return opened(t, server.URL) }).SetBack(server.SetClock)
}
