package sqlitekv

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bootClock returns a name for this start of the machine, and the clock that tells the time since
// then, suspends included, and that nobody sets. All processes share both, but those in another
// time namespace, who have another name. Where nobody can tell the name is empty, and the clock is
// that of the wall.
func bootClock() (boot string, now clock) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var t unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return "", wallClock
	}
	space, _ := os.Readlink("/proc/self/ns/time") // there is only one in an old kernel
	return strings.TrimSpace(string(id)) + " " + space, func() int64 {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			panic(err) // it was there before
		}
		return t.Nano() / 1000
	}
}
