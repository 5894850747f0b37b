// Package clock tells how much time has passed, time in which the machine was suspended
// included: a lease that a server grants runs on meanwhile. It never reads the wall clock,
// which may jump.
package clock

import (
	"sync/atomic"
	"time"
)

// A Clock is made by [New]. Any number of goroutines may use one.
type Clock struct {
	start time.Time
	// boot returns the time since the machine was started, suspends included; 0 if nobody
	// knows.
	boot  func() time.Duration
	first time.Duration // what boot was at the start
	// suspended returns for how long the machine has been suspended since it was started.
	// It takes longer than boot.
	suspended func() time.Duration
	slept     time.Duration // what suspended was at the start
	last      atomic.Int64  // what it was since then, when it was read last
}

// noise is less than any suspend takes, and more than what reading several clocks one after
// another is wrong by as a rule.
const noise = 10 * time.Millisecond

// New returns a clock that begins now. It reads the monotonic clock of package time, which
// is virtual in a testing/synctest bubble, and adds what that leaves out.
func New() *Clock {
	c := &Clock{start: time.Now(), boot: bootTime, suspended: suspendedTime}
	c.slept = c.suspended()
	c.first = c.boot() - time.Since(c.start)
	return c
}

// Now returns the time that has passed since the clock was made. It never goes back.
func (c *Clock) Now() time.Duration {
	passed := time.Since(c.start)
	s := time.Duration(c.last.Load())
	if more := c.boot() - c.first - passed; more < s-noise || more > s+noise {
		// The machine was suspended, or this goroutine waited between two readings, or time
		// is virtual.
		s = c.raise(c.suspended() - c.slept)
	}
	return passed + s
}

// raise notes for how long the machine was suspended, and returns the most that was noted.
func (c *Clock) raise(to time.Duration) time.Duration {
	for {
		s := time.Duration(c.last.Load())
		if to < s+noise || c.last.CompareAndSwap(int64(s), int64(to)) {
			return max(s, time.Duration(c.last.Load()))
		}
	}
}
