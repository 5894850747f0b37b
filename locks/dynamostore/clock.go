package dynamostore

import (
	"sync"
	"time"
)

// clock knows what time it is at the server, as an interval. DynamoDB has no function
// for the time; each of its answers has a Date, in whole seconds. It was written after
// the request was sent and before the answer came, so the server's time is never less
// than the Date was when the answer came, and always less than a second more than the
// Date was when the request was sent.
type clock struct {
	now func() time.Time // the clock of this process, which never goes back

	mu           sync.Mutex
	known        bool
	lower, upper time.Duration // by how much the server's clock is ahead of ours
	since        time.Time     // when the bounds were last taken afresh
}

// fresh is how long bounds are narrowed by later answers. After that they are taken
// afresh, for clocks drift.
const fresh = time.Minute

// epoch makes of a time of ours a duration, by the clock that never goes back.
var epoch = time.Now()

func (c *clock) local() time.Duration { return c.now().Sub(epoch) }

// saw takes note of an answer with that Date, which was asked for at sent and came just
// now.
func (c *clock) saw(date time.Time, sent time.Duration) {
	if date.IsZero() {
		return
	}
	at := date.Sub(epoch.Round(0)) // by the wall
	got := c.local()
	lower, upper := at-got, at+time.Second-sent
	c.mu.Lock()
	defer c.mu.Unlock()
	switch l, u := max(lower, c.lower), min(upper, c.upper); {
	case !c.known, c.now().Sub(c.since) > fresh, l > u: // the last: a clock was set
		c.known, c.lower, c.upper, c.since = true, lower, upper, c.now()
	default:
		c.lower, c.upper = l, u
	}
}

// bounds returns what time it is at the server, at least and at most. ok is false as
// long as nothing is known.
func (c *clock) bounds() (lower, upper time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := epoch.Round(0).Add(c.local())
	return at.Add(c.lower), at.Add(c.upper), c.known
}
