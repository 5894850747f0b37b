//go:build !linux

package clock

import "time"

// suspendedTime is 0 where there is no clock to be had which tells it.
func suspendedTime() time.Duration { return 0 }

func bootTime() time.Duration { return 0 }
