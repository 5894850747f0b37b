// Package clock tells how much time has passed, time in which the machine was suspended
// included: a lease that a server grants runs on meanwhile, and the monotonic clock of
// package time stands still. It never reads the wall clock, which may jump.
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
	pretended atomic.Int64  // what Suspend has added to it
	last      atomic.Int64  // what was suspended since the start, when somebody looked last; it never falls
}

// noise is less than any suspend takes, and more than what reading several clocks one after
// another is wrong by as a rule.
const noise = 10 * time.Millisecond

// New returns a clock that begins now, with a second: so 0 is no time of it. It reads the
// monotonic clock of package time, which is virtual in a testing/synctest bubble, and adds
// what that leaves out.
func New() *Clock {
	c := &Clock{start: time.Now().Add(-time.Second), boot: bootTime, suspended: suspendedTime}
	c.slept = c.suspended()
	c.first = c.boot() - time.Since(c.start)
	return c
}

// Now returns the time that has passed since the clock was made, and a second. It never
// goes back.
func (c *Clock) Now() time.Duration { return c.Suspended() + time.Since(c.start) }

// Soon is a cheaper Now, which may not know yet of the last suspend.
func (c *Clock) Soon() time.Duration {
	return time.Duration(c.last.Load()) + time.Since(c.start)
}

// Suspended returns for how long the machine was suspended since the clock was made. It
// never goes back. It is 0 where nobody can tell, or where the monotonic clock of package
// time counts suspends.
func (c *Clock) Suspended() time.Duration {
	s, pretended := time.Duration(c.last.Load()), time.Duration(c.pretended.Load())
	if seen := c.boot() - c.first - time.Since(c.start) + pretended; seen >= s-noise && seen <= s+noise {
		return s
	}
	// The machine was suspended, or this goroutine waited between two readings, or time is
	// virtual.
	return c.raise(c.suspended() - c.slept + pretended)
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

// Suspend makes it seem, for tests, that the machine was suspended for d. It cannot be
// taken back.
func (c *Clock) Suspend(d time.Duration) { c.pretended.Add(int64(d)) }
