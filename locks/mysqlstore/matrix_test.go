package mysqlstore

import (
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

var target = lockstest.Target{
	Start: func(t testing.TB) (*servers.Server, string) {
		s := servers.MariaDB(t)
		return s, s.URL
	},
	Via: func(s *servers.Server, address string) string {
		return strings.Replace(s.URL, s.Address, address, 1)
	},
	Lease: 2 * time.Second,
}

func TestMatrix(t *testing.T) { lockstest.Matrix(t, target) }
func TestSoak(t *testing.T)   { lockstest.Soak(t, target) }

func TestLostAnswers(t *testing.T) { lockstest.LostAnswers(t, target, nil) }
