package taskqueue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tickRecorder is a store that notes the ticks.
type tickRecorder struct {
	Store
	ticks []time.Time
}

func (s *tickRecorder) Tick(_ context.Context, t Tick) (bool, error) {
	s.ticks = append(s.ticks, t.At)
	return true, nil
}

// The process was asleep, as on a laptop: now is long after the tick that it waited for.
func TestTicksThatTheProcessHasSleptThroughAreSkippedOrCaughtUpOnce(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		catchUp bool
		late    time.Duration
		ticks   []time.Time
	}{
		{false, 0, []time.Time{at}},
		{false, 50 * time.Second, []time.Time{at}},
		{false, 150 * time.Minute, nil},
		{true, 50 * time.Second, []time.Time{at}},
		{true, 150 * time.Minute, []time.Time{at.Add(2 * time.Hour)}},
	} {
		s := new(tickRecorder)
		p := &periodic{name: "report", zone: time.UTC, catchUp: c.catchUp}
		require.NoError(t, p.parse("@hourly"))
		tick := &ticker{w: &worker{q: &Queue{store: s}}, own: p, p: *p}
		assert.True(t, tick.turn(t.Context(), at, at.Add(c.late)))
		assert.Equal(t, c.ticks, s.ticks, "%+v", c)
	}
}
