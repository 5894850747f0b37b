package scheduler

import (
	"math"
	"time"
)

// epoch is when our clock began.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }

// later returns the time d after t, at most the end of time.
func later(t, d time.Duration) time.Duration {
	if t > 0 && d > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + d
}

// onClock returns t on our clock: the same for equal times, whenever it is asked.
func onClock(t time.Time) time.Duration {
	at := t.Sub(epoch)
	if t != t.Round(0) || at == math.MaxInt64 || at == math.MinInt64 {
		return at // it has a monotonic reading, or is beyond the ends of our clock
	}
	now := time.Now()
	stepped := now.Round(0).Sub(epoch.Round(0)) - now.Sub(epoch)
	return at - stepped.Round(10*time.Millisecond)
}

// clockIf reads the clock if that is of use.
func clockIf(yes bool) time.Duration {
	if !yes {
		return 0
	}
	return clock()
}
