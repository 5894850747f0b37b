package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// The numbers that Linux gives its clocks; package syscall does not have them.
const (
	monotonic = 1 // stands still while the machine is suspended; package time reads it
	boottime  = 7 // does not
)

// suspendedTime returns for how long the machine was suspended since it was started.
func suspendedTime() time.Duration {
	for {
		before, boot, after := read(monotonic), read(boottime), read(monotonic)
		// The thread may have lost its processor, or the machine may have been suspended,
		// between two readings: then their difference says nothing.
		if after-before < time.Millisecond {
			return max(boot-after, 0) // 0 as well where there is no boottime
		}
	}
}

// bootTime returns the time since the machine was started.
func bootTime() time.Duration { return read(boottime) }

func read(id uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
