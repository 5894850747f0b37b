package pgstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestStore(t *testing.T) {
	url := servers.Postgres(t).URL
	lockstest.Run(t, func(t testing.TB) locks.Store { return opened(t, url) })
}

func opened(t testing.TB, url string) *Store {
	t.Helper()
	s, err := locks.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}
