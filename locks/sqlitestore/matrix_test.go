package sqlitestore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

var target = lockstest.Target{
	Start: func(t testing.TB) (*servers.Server, string) {
		return nil, "sqlite:" + filepath.Join(t.TempDir(), "locks.db")
	},
	Lease: 2 * time.Second,
}

func TestMatrix(t *testing.T) { lockstest.Matrix(t, target) }
func TestSoak(t *testing.T)   { lockstest.Soak(t, target) }
