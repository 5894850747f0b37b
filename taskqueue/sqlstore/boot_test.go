//go:build unix

package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// machine is a clock that is set by hand.
func machine(s *Store, wall, steady time.Duration, boot string) {
	s.db.(*file).clock = func() moment {
		return moment{wall: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(wall).UnixMicro(), steady: steady.Microseconds(), boot: boot}
	}
}

// Leases of an earlier start of the machine have ended, and nobody could call meanwhile: that
// is a gap, not a crash.
func TestAStartOfTheMachineIsNoCrash(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	machine(s, 0, 1000*time.Hour, "first")
	enqueued(t, s, newTask("a"))
	require.Len(t, claimed(t, s, 1).Tasks, 1)
	claimed(t, s, 0)
	crashes := func() int {
		i, err := s.Get(t.Context(), "q", "a")
		require.NoError(t, err)
		return i.Crashes
	}
	machine(s, time.Minute, 10*time.Second, "second")
	require.Empty(t, claimed(t, s, 1).Tasks)
	assert.Zero(t, crashes())
	for at := 20 * time.Second; at < 80*time.Second; at += 10 * time.Second {
		machine(s, at, at, "second")
		claimed(t, s, 0)
	}
	assert.Equal(t, 1, crashes(), "its worker has not called for the length of its lease since")
	sound(t, s)
}

// The wall clock is put forward or back by hours: no lease ends, or lasts longer.
func TestALeaseIsNotByTheWallClock(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	machine(s, 0, time.Hour, "one")
	enqueued(t, s, newTask("a"))
	run := claimed(t, s, 1).Tasks[0]
	for i, wall := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		machine(s, wall, time.Hour+time.Duration(i+1)*10*time.Second, "one")
		require.Empty(t, claimed(t, s, 1).Tasks)
		r, err := s.Extend(t.Context(), store.ExtendRequest{Queue: "q", Worker: "w", Lease: time.Minute, Refs: []store.Ref{{ID: "a", Token: run.Token}}})
		require.NoError(t, err)
		assert.Equal(t, []store.ExtendResult{store.Extended}, r)
	}
	for seconds := range 8 {
		machine(s, 0, time.Hour+time.Duration(30+10*seconds)*time.Second, "one")
		claimed(t, s, 0)
	}
	i, err := s.Get(t.Context(), "q", "a")
	require.NoError(t, err)
	assert.Equal(t, 1, i.Crashes)
}
