package sqlitestore

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestLoad(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "load.db")
	lockstest.Load(t, func(t testing.TB) locks.Store {
		s, err := locks.Open(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}, lockstest.LoadConfig{})
}
