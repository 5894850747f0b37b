package mysqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestLoad(t *testing.T) {
	server := servers.MariaDB(t)
	lockstest.Load(t, func(t testing.TB) locks.Store {
		s, err := locks.Open(t.Context(), server.URL)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}, lockstest.LoadConfig{})
}
