package locks

import (
	"sync/atomic"
	"time"
)

// A clock tells how much time has passed, time in which the machine was suspended
// included. It never reads the wall clock, which may jump.
type clock struct {
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

// suspendNoise is less than any suspend takes, and more than what reading several clocks
// one after another is wrong by as a rule.
const suspendNoise = 10 * time.Millisecond

// newClock returns a clock that begins with a second, so that 0 is no time of it. It reads
// the monotonic clock of package time, which is virtual in a testing/synctest bubble, and
// adds what that leaves out.
func newClock() *clock {
	c := &clock{start: time.Now().Add(-time.Second), boot: bootTime, suspended: suspendedTime}
	c.slept = c.suspended()
	c.first = c.boot() - time.Since(c.start)
	return c
}

// now returns the time that has passed.
func (c *clock) now() time.Duration {
	passed := time.Since(c.start)
	s := time.Duration(c.last.Load())
	if more := c.boot() - c.first - passed; more < s-suspendNoise || more > s+suspendNoise {
		// The machine was suspended, or this goroutine waited between two readings, or time
		// is virtual.
		if s = c.suspended() - c.slept; s < suspendNoise {
			s = 0
		}
		c.last.Store(int64(s))
	}
	return passed + s
}

// soon is a cheaper now, which may not know yet of the last suspend.
func (c *clock) soon() time.Duration {
	return time.Since(c.start) + time.Duration(c.last.Load())
}
