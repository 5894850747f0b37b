package taskqueue

import "github.com/ambit-go/ambit/lease"

// UseClock has the workers of a test measure leases by a clock until it ends.
func UseClock(c *lease.Clock) (end func()) {
	newClock = func() *lease.Clock { return c }
	return func() { newClock = lease.NewClock }
}
