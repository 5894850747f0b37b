package tree

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "1h 30m": 90 * time.Minute, "3 minutes 30 seconds": 210 * time.Second,
		"1 hour and 5 mins": 65 * time.Minute, "90": 90 * time.Second, "1.5 hours": 90 * time.Minute,
		"one hour": time.Hour, "half an hour": 0, "2 hrs 20 min": 140 * time.Minute, "4 mins 20 sec": 260 * time.Second,
		"6h 1 day": 30 * time.Hour, "1w": 168 * time.Hour, "3 dys": 72 * time.Hour, "250ms": 250 * time.Millisecond, "1:30:00": 90 * time.Minute,
		"02:05": 125 * time.Second, "1h30m": 90 * time.Minute, "1 hour, 2 minutes": 62 * time.Minute,
		"": 0, "soon": 0, "1 fortnight": 0, "h": 0, "1h -30m": 0, "1e9h": 0, "1:99": 0, "1:2:3:4": 0, "..h": 0, "and": 0,
	} {
		d, err := ParseDuration(text)
		require.Equal(t, want == 0, err != nil, "%q: %v, %v", text, d, err)
		if err == nil {
			require.Equal(t, want, d, "%q", text)
		}
	}
}
