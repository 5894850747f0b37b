package locks

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedTime returns for how long the machine was suspended since it was started:
// what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC, which package time reads, does not.
func suspendedTime() time.Duration {
	for {
		before, boot, after := read(unix.CLOCK_MONOTONIC), read(unix.CLOCK_BOOTTIME), read(unix.CLOCK_MONOTONIC)
		// The thread may have lost its processor, or the machine may have been suspended,
		// between two readings: then their difference says nothing.
		if after-before < time.Millisecond {
			return max(boot-after, 0) // 0 as well where there is no CLOCK_BOOTTIME
		}
	}
}

// bootTime returns the time since the machine was started.
func bootTime() time.Duration { return read(unix.CLOCK_BOOTTIME) }

func read(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
