package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep is for how long the machine was suspended since it was started, or a little
// less.
func asleep() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil {
		return 0
	}
	return time.Duration(all.Nano() - awake.Nano())
}
