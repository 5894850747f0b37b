package mysqlstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestAProcessSeesThatItIsItsTurnWithoutReadingAllThatWait: when a lock is handed on, each
// process that waits looks whose turn it is. The cost of the look must not grow with their number.
func TestAProcessSeesThatItIsItsTurnWithoutReadingAllThatWait(t *testing.T) {
	url := database(t)
	other := opened(t, url)
	for round := range 10 { // a request may be forgotten before its hint comes, on a busy machine
		s, name := opened(t, url), locks.Name{Tenant: "t", Key: fmt.Sprint("k", round)}
		_, err := other.Acquire(t.Context(), name, []locks.Request{request("holder")})
		require.NoError(t, err)
		hints, stop := s.Listen(name)
		defer stop()
		_, err = s.Acquire(t.Context(), name, []locks.Request{request("waiter")})
		require.NoError(t, err)
		require.NoError(t, s.db.statements.Entries.Close()) // to read them fails from now on
		_, err = other.Release(t.Context(), name, locks.Ref{ID: "holder"}, nil)
		require.NoError(t, err)
		select {
		case <-hints:
			return
		case <-time.After(locks.WaiterLife):
		}
	}
	require.Fail(t, "no hint came")
}

// TestLooksDoNotGrowWithThoseWhoWait: the looks of 64 processes would leave the server no time for the steps of those whose turn it is.
func TestLooksDoNotGrowWithThoseWhoWait(t *testing.T) {
	for crowd := int64(1); crowd <= 500; crowd++ {
		looks := float64(crowd) / least(1, crowd).Seconds()
		require.LessOrEqual(t, looks, 2000.0, "%d wait", crowd)
	}
	require.Less(t, least(1, 2), 5*time.Millisecond, "few are told at once")
	require.Less(t, least(1, 100_000), time.Second/3)

	url, name := database(t), locks.Name{Tenant: "t", Key: "k"}
	s := opened(t, url)
	requests := []locks.Request{request("holder"), request("one"), request("two")}
	for i := range requests {
		_, err := s.Acquire(t.Context(), name, requests[i:i+1])
		require.NoError(t, err)
	}
	w := newWatcher(s.db)
	c, err := s.db.db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, stop := s.db.hub.Board.Listen(name) // which starts no watcher, so that the test alone looks
	defer stop()
	_, err = w.look(c, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, w.crowd)
	_, stop = s.db.hub.Board.Listen(name) // both are of this process
	defer stop()
	_, err = w.look(c, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, w.crowd)
}
