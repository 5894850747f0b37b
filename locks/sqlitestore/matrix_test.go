package sqlitestore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestMatrix(t *testing.T) {
	lockstest.Matrix(t, lockstest.Target{
		Start: func(t testing.TB) (*servers.Server, string) {
			return nil, "sqlite:" + filepath.Join(t.TempDir(), "locks.db")
		},
		Lease: 2 * time.Second,
	})
}
