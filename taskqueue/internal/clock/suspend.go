package clock

import (
	"sync/atomic"
	"time"
)

// The monotonic clock of Go stands still on Linux while the machine is suspended. A
// lease does not, if its store is on another machine.

// slept is for how long the machine was suspended since the program began, as far as
// somebody has looked; pretended is what Suspend adds, in nanoseconds.
var slept, pretended atomic.Int64

// shortest is the shortest suspend that counts. Two clocks are read one after the other,
// so they seem to differ by a little.
const shortest = 100 * time.Millisecond

var sleptBefore = asleep()

// Steady returns the time of a clock that runs on while the machine is suspended. It is
// to be compared with other times of it.
func Steady() time.Time {
	for {
		known := slept.Load()
		now := int64(asleep() - sleptBefore)
		if now < known+int64(shortest) || slept.CompareAndSwap(known, now) {
			return Now().Add(time.Duration(slept.Load() + pretended.Load()))
		}
	}
}

// FromSteady returns the time of Now that is as far away as t is in the time of Steady.
func FromSteady(t time.Time) time.Time { return Now().Add(t.Sub(Steady())) }

// Suspend makes it seem, for tests, that the machine was suspended for d.
func Suspend(d time.Duration) { pretended.Add(int64(d)) }
