package pgstore

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

var target = lockstest.Target{
	Start: func(t testing.TB) (*servers.Server, string) {
		s := servers.Postgres(t)
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

// TestAnswersThatAreLostAsTheServerEndsTheConnection: it may have done the step before.
func TestAnswersThatAreLostAsTheServerEndsTheConnection(t *testing.T) {
	words := "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection due to administrator command\x00\x00"
	lockstest.LostAnswers(t, target, append(binary.BigEndian.AppendUint32([]byte("E"), uint32(len(words)+4)), words...))
}
