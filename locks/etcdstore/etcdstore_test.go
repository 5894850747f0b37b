package etcdstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestMain(m *testing.M) {
	lockstest.Main()
	goleak.VerifyTestMain(servers.Ending{M: m})
}

// store opens a store of its own, with a client of its own, as a process has.
func store(t testing.TB, url string) locks.Store {
	s, err := locks.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestTheSuite(t *testing.T) {
	server := servers.Etcd(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return store(t, server.URL) })
}
