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
