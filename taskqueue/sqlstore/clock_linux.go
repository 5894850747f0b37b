package sqlstore

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// machineTime returns what tells the time of the machine: that since it was started runs on
// while the machine is suspended, and nobody puts it forward or back.
func machineTime() func() moment {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return programTime
	}
	id := strings.TrimSpace(string(boot))
	return func() moment {
		var since unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
			return programTime()
		}
		return moment{wall: clock.Now().UnixMicro(), steady: since.Nano() / 1000, boot: id}
	}
}
