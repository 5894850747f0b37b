package dynamostore_test

import (
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

var target = lockstest.Target{
	Start: func(t testing.TB) (*servers.Server, string) {
		s := servers.Dynalite(t)
		return s, s.URL
	},
	Via: func(_ *servers.Server, address string) string {
		return "dynamodb:locks?region=us-east-1&endpoint=http://" + address
	},
	Lease:    5 * time.Second,
	OwnClock: true, // a table of Node, whose clock is its own affair
}

func TestMatrix(t *testing.T) { lockstest.Matrix(t, target) }
func TestSoak(t *testing.T)   { lockstest.Soak(t, target) }

func TestLoad(t *testing.T) {
	server := servers.Dynalite(t)
	lockstest.Load(t, func(t testing.TB) locks.Store { return store(t, server) }, lockstest.LoadConfig{Held: 100, Lease: time.Minute, Waiters: 100})
}
