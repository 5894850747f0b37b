package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestATokenFromTheFutureKeepsNoLeaseFromEnding(t *testing.T) {
	server := servers.Redis(t)
	f := lockstest.NewFixture(t, func(t testing.TB) locks.Store { return store(t, server) })
	f.Ahead(func(name locks.Name, token int64) {
		floor := fmt.Sprintf("lk:{%d:%s}#f", book.Bucket(name)%64, name.Tenant)
		require.NoError(t, connect(t, server).Set(t.Context(), floor, token, 0).Err())
	})
}

func TestARequestOfAClockThatWasSetBackIsForgotten(t *testing.T) {
	server := servers.Redis(t)
	server.FakeClock()
	lockstest.NewFixture(t, func(t testing.TB) locks.Store { return store(t, server) }).SetBack(server.SetClock)
}
