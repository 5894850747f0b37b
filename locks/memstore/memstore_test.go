package memstore_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

func TestTheSuiteInVirtualTime(t *testing.T) {
	for _, test := range lockstest.Tests() {
		t.Run(test.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				test.Run(t, lockstest.NewFixture(t, func(testing.TB) locks.Store { return s }))
			})
		})
	}
}

func TestAClockThatGoesBackNeitherLowersAFenceNorMakesALeaseLonger(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := memstore.WithClock(func() time.Time { return now })
	name := locks.Name{Tenant: "t", Key: "k"}
	ask := func(id string) locks.Answer {
		turn, err := s.Acquire(t.Context(), name, []locks.Request{{ID: id, Version: id, Kind: locks.Mutex, Lease: 10 * time.Second, Wait: true}})
		require.NoError(t, err)
		return turn.Answers[0]
	}
	first := ask("a").Grant
	now = now.Add(-time.Hour)
	require.False(t, ask("b").Granted)
	require.Equal(t, first.Expires, ask("a").Grant.Expires)
	_, err := s.Release(t.Context(), name, locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	require.Equal(t, first.Fence+1, ask("b").Grant.Fence)
}

// TestForceEndsTheLeaseOfTheDeadWhoseEndTheClockDoesNotKnow: the clock is put back by an hour,
// so the lease of a holder that dies lasts an hour longer.
func TestForceEndsTheLeaseOfTheDeadWhoseEndTheClockDoesNotKnow(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := memstore.WithClock(func() time.Time { return now })
	m, err := locks.New(s)
	require.NoError(t, err)
	dead, err := m.Acquire(t.Context(), "k", locks.NoRenew())
	require.NoError(t, err)
	now = now.Add(-time.Hour)
	n, err := m.Revoke(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	now = now.Add(time.Minute)
	require.ErrorIs(t, m.Delete(t.Context(), "k", ""), locks.ErrConflict)
	n, err = m.Revoke(t.Context(), "k", locks.Force)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, m.Delete(t.Context(), "k", ""))
	next, err := m.Acquire(t.Context(), "k", locks.NoWait())
	require.NoError(t, err)
	require.Greater(t, next.Token(), dead.Token())
	require.NoError(t, next.Release(t.Context()))
	require.Error(t, dead.Release(t.Context()))
}

func TestNothingIsDoneAfterClose(t *testing.T) {
	s := memstore.New()
	require.NoError(t, s.Close())
	_, err := s.Acquire(t.Context(), locks.Name{Key: "k"}, []locks.Request{{ID: "a", Kind: locks.Mutex, Lease: time.Hour}})
	_, err2 := s.List(t.Context(), "", "", 1)
	_, err3 := s.Purge(t.Context(), "", 1)
	for _, err := range []error{err, err2, err3} {
		require.ErrorIs(t, err, locks.ErrClosed)
		require.ErrorIs(t, err, locks.ErrUnavailable)
	}
}
