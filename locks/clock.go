package locks

import (
	"sync/atomic"
	"time"
)

// A clock tells how much time has passed, time in which the machine was suspended
// included. It never reads the wall clock, which may jump.
type clock struct {
	start time.Time
	// suspended returns for how long the machine has been suspended since some moment.
	suspended func() time.Duration
	first     time.Duration // what that was at the start
	last      atomic.Int64  // what it was, since the start, when it was read last
}

// suspendNoise is less than any suspend takes, and more than what reading several clocks
// one after another may be wrong by.
const suspendNoise = 10 * time.Millisecond

// newClock returns a clock that begins with a second, so that 0 is no time of it. It reads the monotonic clock of package
// time, which is virtual in a testing/synctest bubble, and adds what that leaves out.
func newClock(suspended func() time.Duration) *clock {
	return &clock{start: time.Now().Add(-time.Second), suspended: suspended, first: suspended()}
}

// now returns the time that has passed.
func (c *clock) now() time.Duration {
	s := c.suspended() - c.first
	if s < suspendNoise {
		s = 0
	}
	c.last.Store(int64(s))
	return time.Since(c.start) + s
}

// soon is a cheaper now, which may not know yet of the last suspend.
func (c *clock) soon() time.Duration {
	return time.Since(c.start) + time.Duration(c.last.Load())
}
