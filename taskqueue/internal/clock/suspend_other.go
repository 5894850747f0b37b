//go:build !linux

package clock

import "time"

// asleep is 0: there the monotonic clock runs on, or nobody can tell.
func asleep() time.Duration { return 0 }
