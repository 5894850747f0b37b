//go:build !linux

package lease

import "time"

// suspendedTime is 0 where the monotonic clock of package time counts suspends, as on
// Windows, and where no clock that the standard library can read tells them.
func suspendedTime() time.Duration { return 0 }
