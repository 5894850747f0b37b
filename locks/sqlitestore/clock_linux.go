package sqlitestore

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootClock returns a name for this start of the machine, and the clock that tells the time
// since then, suspends included. All processes share both, but those in another time
// namespace, who have another name. It is empty where nobody can tell.
func bootClock() (boot string, since func() time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", nil
	}
	space, _ := os.Readlink("/proc/self/ns/time") // there is only one in an old kernel
	return strings.TrimSpace(string(id)) + " " + space, func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			panic(err) // there is such a clock since Linux 2.6.39
		}
		return time.Duration(t.Nano())
	}
}
