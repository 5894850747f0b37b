package mysqlstore

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
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	url := servers.MariaDB(t).URL
	lockstest.Run(t, func(t testing.TB) locks.Store { return opened(t, url) })
}

func opened(t testing.TB, url string) *Store {
	t.Helper()
	s, err := locks.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}
