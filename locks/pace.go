package locks

import (
	"math"
	"sync/atomic"
	"time"
)

// A pace is when a body said last that it gets on. All locks that one call has taken share
// one: a body gets on or hangs, whatever it holds.
type pace struct{ said atomic.Int64 }

// notBegun is the time of a body that waits for the rest of its locks: it need say nothing.
const notBegun = time.Duration(math.MaxInt64)

func newPace(now time.Duration) *pace {
	p := new(pace)
	p.say(now)
	return p
}

func (p *pace) say(now time.Duration) { p.said.Store(int64(now)) }

// silent is for how long the body has said nothing.
func (p *pace) silent(now time.Duration) time.Duration { return now - time.Duration(p.said.Load()) }
