package locks

import "time"

// margin is how long before the end of a lease in the store its holder believes that it
// has ended.
func margin(lease time.Duration) time.Duration {
	return min(max(lease/10, 100*time.Millisecond), 2*time.Second)
}

// trusted is for how long, counted from before it was asked for, a lease is believed: 99
// of 100 for clocks that do not run alike, less a margin for the work of stopping.
func trusted(lease time.Duration) time.Duration {
	return lease/100*99 - margin(lease)
}

// patience bounds one call for a lease.
func patience(lease time.Duration) time.Duration { return lease / 6 }

// again is when a renewal that did not succeed is sent once more.
func again(lease time.Duration) time.Duration { return lease / 12 }

// nextRenewal is the time from one renewal to the next: a third of the lease, and at most
// a tenth of that more or less. It is due from the middle of that on, by jitter, which is
// from 0 to 1; before, it is sent along with others.
func nextRenewal(lease time.Duration, jitter float64) (earliest, due time.Duration) {
	third := lease / 3
	return third - third/10, third + time.Duration(jitter*float64(third/10))
}
