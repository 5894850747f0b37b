// Package clock is the clock that this module reads. It is that of the machine; the
// run of chaos puts it forward and back, to show that no clock of a worker matters.
package clock

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// offset is what the wall clock is put forward by, in seconds.
var offset atomic.Int64

// Now returns the time of the wall clock, with that of the monotonic clock, which no
// Set has an effect on: so is a clock of a machine that somebody puts forward or back.
func Now() time.Time {
	now := time.Now()
	if s := offset.Load(); s != 0 {
		put(&now, s)
	}
	return now
}

// Until is time.Until for this clock.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }

// Set puts the wall clock forward by d against that of the machine, in whole seconds.
func Set(d time.Duration) { offset.Store(int64(d / time.Second)) }

// put moves the wall clock's reading in t alone. Package time moves both readings
// together, and a time without a monotonic reading would be another case.
func put(t *time.Time, seconds int64) {
	// As package time has it: the highest bit says that there is a monotonic reading;
	// 33 bits of seconds follow, then 30 bits of nanoseconds.
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(t)).wall += uint64(seconds << 30)
}
