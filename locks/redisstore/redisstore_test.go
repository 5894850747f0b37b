package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/locks/redisstore"
)

func TestMain(m *testing.M) {
	lockstest.Peer = peer
	lockstest.Main()
	goleak.VerifyTestMain(m)
}

func connect(t testing.TB, s *servers.Server) *redis.Client {
	client := redis.NewClient(&redis.Options{Network: s.Network, Addr: s.Address})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func store(t testing.TB, s *servers.Server) *redisstore.Store {
	made, err := redisstore.New(context.Background(), connect(t, s), redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	return made
}

func TestTheSuite(t *testing.T) {
	server := servers.Redis(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return store(t, server) })
}

func TestAClosedClientIsAClosedStore(t *testing.T) {
	s := servers.Redis(t)
	client := redis.NewClient(&redis.Options{Network: s.Network, Addr: s.Address})
	made, err := redisstore.New(t.Context(), client, redisstore.Warn(func(string) {}))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_, err = made.Get(t.Context(), locks.Name{Tenant: "t", Key: "k"})
	require.ErrorIs(t, err, locks.ErrClosed)
	require.ErrorIs(t, err, locks.ErrUnavailable)
	require.NoError(t, made.Close())
}
