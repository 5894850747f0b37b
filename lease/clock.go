package lease

import (
	"sync/atomic"
	"time"
)

// A Clock tells how much time has passed, the time in which the machine was suspended
// included: the term that a server has granted goes on in that time, and the monotonic
// clock of package time stands still on most systems.
//
//	clock := lease.NewClock()
//	sent := clock.Now()
//
// A Clock is made by [NewClock]. Any number of goroutines may use one, and a clock that
// was made outside of a testing/synctest bubble works in one.
type Clock struct {
	start time.Time
	slept time.Duration // suspendedTime when the clock was made

	pretended atomic.Int64 // the sum of what Suspend was given
	suspended atomic.Int64 // suspends since the clock was made, as far as known; never falls
	// offset is the wall clock less the monotonic clock at the last call of see. It is a
	// hint and nothing else: a suspend changes the difference, and so does somebody who
	// sets the wall clock.
	offset atomic.Int64
}

// noise is shorter than any suspend, and longer than two readings of clocks one after
// another differ as a rule. The least margin of a term is ten times as long.
const noise = 10 * time.Millisecond

// NewClock returns a clock that counts the time of suspends and that nobody can set.
//
//	clock := lease.NewClock()
//	k := lease.NewKeeper(ctx, renew, lease.WithClock(clock))
//
// # Details
//
// The clock starts at one second, so that 0 is no time of it. It reads the monotonic clock
// of package time, which is virtual in a testing/synctest bubble, and adds the suspends: on
// Linux the difference of CLOCK_BOOTTIME and CLOCK_MONOTONIC. On Windows the monotonic
// clock counts suspends already. Elsewhere, on macOS for one, nobody tells them: see the
// section Clocks of the package documentation. The time of day is never believed.
func NewClock() *Clock {
	c := &Clock{start: time.Now().Add(-time.Second), slept: suspendedTime()}
	c.see()
	return c
}

// Now returns the time since one second before the clock was made. It never goes back.
// It costs about as much as time.Now.
func (c *Clock) Now() time.Duration {
	now := time.Now()
	passed := now.Sub(c.start)
	if moved := now.UnixNano() - int64(passed) - c.offset.Load(); moved > int64(noise) || moved < -int64(noise) {
		c.see()
	}
	return passed + c.known()
}

// Suspended returns how long the machine was suspended since the clock was made. It
// never goes back, and is 0 where nobody tells, or where the monotonic clock of package
// time counts suspends itself.
func (c *Clock) Suspended() time.Duration {
	c.see()
	return c.known()
}

// Suspend makes it seem, for tests, that the machine was suspended for d.
//
//	clock.Suspend(time.Minute)
//
// # Details
//
// The clock jumps, and timers do not. A suspend cannot be taken back, so d must not be
// negative.
func (c *Clock) Suspend(d time.Duration) { c.pretended.Add(int64(max(d, 0))) }

// known returns the suspends that were seen.
func (c *Clock) known() time.Duration {
	return time.Duration(c.suspended.Load() + c.pretended.Load())
}

// see asks the system for suspends. The question costs a system call or three, so Now
// asks only when the hint says that there may be one, and a keeper asks each second.
func (c *Clock) see() {
	now := time.Now()
	to := int64(suspendedTime() - c.slept)
	for {
		old := c.suspended.Load()
		if to < old+int64(noise) || c.suspended.CompareAndSwap(old, to) {
			break
		}
	}
	// After the sum: who finds the new offset finds the suspend that explains it.
	c.offset.Store(now.UnixNano() - int64(now.Sub(c.start)))
}
