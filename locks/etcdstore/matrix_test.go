package etcdstore_test

import (
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

var target = lockstest.Target{
	Start: func(t testing.TB) (*servers.Server, string) {
		s := servers.Etcd(t)
		return s, s.URL
	},
	Via:      func(_ *servers.Server, address string) string { return "etcd://" + address },
	Lease:    2 * time.Second,
	OwnClock: true, // leases are counted by a clock that nobody sets
}

func TestMatrix(t *testing.T) { lockstest.Matrix(t, target) }
func TestSoak(t *testing.T)   { lockstest.Soak(t, target) }

func TestLoad(t *testing.T) {
	server := servers.Etcd(t)
	lockstest.Load(t, func(t testing.TB) locks.Store { return store(t, server.URL) }, lockstest.LoadConfig{})
}

func TestLostAnswers(t *testing.T) { lockstest.LostAnswers(t, target, nil) }
