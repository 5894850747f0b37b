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
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return programTime
	}
	return func() moment {
		wall, steady := together(func() int64 { return clock.Now().UnixMicro() }, sinceStart)
		return moment{wall: wall, steady: steady, boot: id}
	}
}

func sinceStart() int64 {
	var since unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) // it has worked before
	return since.Nano() / 1000
}

// together reads two clocks, in µs, at one instant: a process that is stopped between two readings
// would find that the clocks have parted. It takes the shortest of some attempts.
func together(wall, steady func() int64) (atWall, atSteady int64) {
	shortest := int64(-1)
	for range 10 {
		begin := steady()
		now := wall()
		end := steady()
		if took := end - begin; shortest < 0 || took < shortest {
			shortest, atWall, atSteady = took, now, begin
		}
		if shortest <= 2 {
			break
		}
	}
	return atWall, atSteady
}
