package taskqueue

import (
	"math/rand/v2"
	"time"
)

// DefaultBackoff is the wait after a number of failures: one second, doubled with
// each failure up to an hour, give or take a quarter.
func DefaultBackoff(failures int) time.Duration {
	d := min(time.Second<<min(max(failures-1, 0), 12), time.Hour)
	return d - d/4 + rand.N(d/2+1)
}

// unknownBackoff is the wait after a task was given back a number of times in a row.
func unknownBackoff(releases int) time.Duration {
	return min(time.Second<<min(max(releases, 0), 6), time.Minute)
}

// clampWait is d in the bounds that every store can count in.
func clampWait(d time.Duration) time.Duration { return min(max(d, 0), MaxDelay) }

// pause is how long is waited after a number of errors of the store in a row, from 0 on.
func pause(failures int) time.Duration { return min(50*time.Millisecond<<min(failures, 5), maxIdle) }
