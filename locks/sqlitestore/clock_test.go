package sqlitestore

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestSettingTheClockOfTheMachineChangesNothing: the processes of a machine share a clock that
// nobody sets. One that starts when the wall has been put back by a day sees the same time.
func TestSettingTheClockOfTheMachineChangesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no such clock here")
	}
	db := pool(t, filepath.Join(t.TempDir(), "locks.db"))
	at := func(wall time.Duration) *Store {
		s, err := open(t.Context(), db, false, func() time.Time { return time.Now().Add(wall) })
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	first := at(0)
	for _, wall := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		require.InDelta(t, first.file.now(), at(wall).file.now(), float64(time.Hour.Microseconds()))
	}

	// The machine is started again, and its clock is behind until it has heard of the time.
	name := locks.Name{Tenant: "t", Key: "k"}
	turn, err := first.Acquire(t.Context(), name, []locks.Request{request("a")})
	require.NoError(t, err)
	_, err = db.Exec("UPDATE lk_clock SET boot = x'00'")
	require.NoError(t, err)
	require.GreaterOrEqual(t, at(-24*365*time.Hour).file.now(), turn.Answers[0].Grant.Fence)
}
