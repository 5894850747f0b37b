package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAHoldThatHasEndedIsNotBoarded: the watchdog has picked holds to be renewed, and one of
// them is given back before that is noted. Its release waits for no renewal, so none may be
// sent: it would come after the release.
func TestAHoldThatHasEndedIsNotBoarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leavingStore{}
		m, err := New(s)
		require.NoError(t, err)
		ended, lost, held := acquired(t, m, "ended"), acquired(t, m, "lost"), acquired(t, m, "held")
		g := &renewals{holds: []*Hold{ended, lost, held}}
		require.NoError(t, ended.Release(t.Context()))
		lost.lose(LostStolen, nil)

		require.True(t, m.dog.boardLocked(m.clock.Now(), g))
		assert.Equal(t, []*Hold{held}, g.holds)
		assert.Nil(t, ended.flight)
		assert.Nil(t, lost.flight)
		assert.Same(t, g.flight, held.flight)

		held.flight.leave()
		assert.Error(t, g.flight.ctx.Err(), "nobody needs the call any more")
		held.flight = nil
		require.NoError(t, held.Release(t.Context()))

		g = &renewals{holds: []*Hold{ended}, class: class{alone: ended}}
		assert.False(t, m.dog.boardLocked(m.clock.Now(), g), "nobody is left")
		assert.Zero(t, m.dog.lonely)
	})
}

func acquired(t *testing.T, m *Manager, key string) *Hold {
	h, err := m.Acquire(t.Context(), key, LeaseFor(time.Minute))
	require.NoError(t, err)
	return h
}
