package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAClockThatIsPutForwardOrBackRunsOnMonotonically(t *testing.T) {
	defer Set(0)
	for _, d := range []time.Duration{-10 * time.Minute, -time.Second, 0, time.Hour} {
		before := Now()
		Set(0)
		real := Now()
		Set(d)
		now := Now()
		assert.InDelta(t, d.Seconds(), now.Round(0).Sub(real.Round(0)).Seconds(), 30, "the wall clock")
		assert.GreaterOrEqual(t, now.Sub(before), time.Duration(0))
		assert.Less(t, now.Sub(before), 30*time.Second, "the monotonic clock")
		assert.Less(t, Until(now.Add(time.Minute)), time.Minute+30*time.Second)
	}
}
