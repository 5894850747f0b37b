package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheSteadyClockRunsOnWhileTheMachineIsSuspended(t *testing.T) {
	begin, steady := Now(), Steady()
	assert.Less(t, Steady().Sub(steady), 30*time.Second)
	Suspend(time.Hour)
	assert.GreaterOrEqual(t, Steady().Sub(steady), time.Hour-time.Second)
	assert.Less(t, Now().Sub(begin), 30*time.Second)
	in := FromSteady(Steady().Add(time.Minute))
	assert.InDelta(t, time.Minute, Until(in), float64(30*time.Second))
}

// Two clocks are read, and something else may run between that. A time that has begun
// to count does not go back.
func TestTheSteadyClockDoesNotGoBack(t *testing.T) {
	last := Steady()
	for range 100_000 {
		now := Steady()
		if now.Before(last) {
			t.Fatalf("%v is %v before what it was", now, last.Sub(now))
		}
		last = now
	}
}
