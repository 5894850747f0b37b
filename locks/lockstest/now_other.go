//go:build !linux

package lockstest

import "time"

// Now is a time that all processes share. Where there is no clock that nobody sets it is
// that of the wall.
func Now() time.Duration { return time.Duration(time.Now().UnixNano()) }
