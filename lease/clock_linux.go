package lease

import (
	"syscall"
	"time"
	"unsafe"
)

// The numbers of the clocks of Linux, which package syscall does not have.
const (
	monotonic = 1 // stands still while the machine is suspended; package time reads it
	boottime  = 7 // goes on
)

// suspendedTime returns how long the machine was suspended since it was started.
func suspendedTime() time.Duration {
	for {
		before, boot, after := read(monotonic), read(boottime), read(monotonic)
		// If the thread has lost its processor, or the machine was suspended, between two
		// readings, then their difference says nothing.
		if after-before < time.Millisecond {
			return max(boot-after, 0) // 0 also where there is no boottime
		}
	}
}

// read returns the time of a clock, 0 if there is no such clock.
func read(id uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
