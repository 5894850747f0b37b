package lockstest

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since the machine was started. It is the same for all processes, and
// nobody sets it.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is such a clock
	}
	return time.Duration(t.Nano())
}
