package kvqueue

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// An Item is an item that this process has claimed.
type Item struct {
	Key   Key
	Value []byte
	Group string // see [Group]; empty: none
	// Attempt is 1 for the first run of the item, and grows with each run that has failed and
	// with each process that went away with it.
	Attempt int
	// Fence is greater for each later claim of the item: a resource that remembers the
	// greatest one it was shown can refuse those that are late.
	Fence Rev
	// Added is when the item was added, by the clock of its producer: for people and for statistics, and never
	// for order. It is zero if that is not known, as of items that an earlier version has added or moved.
	Added time.Time

	claim *claim
}

// Err returns nil while the item is claimed by this process, and a [*LostError] when it may
// be somebody else's. It looks at the clock: call it before each write outside. For an item that
// was settled it returns [ErrSettled].
func (i Item) Err() error {
	switch {
	case i.claim == nil:
		return invalid("item", "it was not taken from a queue")
	case i.claim.is() == settled:
		return i.claim.past(i.Key)
	default:
		return i.claim.session.err()
	}
}

// A claim is what this process knows of an item that it has.
type claim struct {
	session *session
	key     Key
	rec     record
	fence   Rev
	policy  Policy

	taken *taken // the Take that it is of, if it is; set before anybody knows the claim

	// unsure says that a call whose answer was lost may have settled it, as the verdict of the
	// first of those says. late says that the answer to a transaction that acknowledges it was lost, which may be
	// done at any time. counted says that it was told as lost. All are its settler's.
	unsure  bool
	as      verdict
	late    bool
	counted bool

	delayed atomic.Bool // its run has failed, and it stays claimed until its RetryDelay is over

	mu    sync.Mutex
	state claimState
	lost  error                // a settled claim was lost in truth
	end   *settlement          // what the end of the scope wants of a claim that somebody was settling then
	left  *request[settlement] // of the last call that has returned [ErrUnknown], until another has looked what came of it
	back  *settlement          // the last call that a user made wanted the item back, so; the end of the scope acknowledges no such item
}

// claimState says how far a claim is. A claim that is settling is its settler's; it goes
// back to held if nothing came of it.
type claimState uint8

const (
	held claimState = iota
	settling
	settled
)

func (c *claim) is() claimState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// begin gives the claim to the caller to settle so, and reports false if it is somebody
// else's, or was settled.
func (c *claim) begin(as settlement) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != held {
		return false
	}
	if c.back = nil; as.verdict != done {
		c.back = &as
	}
	c.takeLocked()
	return true
}

// takeLocked gives a held claim to its settler.
func (c *claim) takeLocked() {
	c.state = settling
	c.counted = c.session.held.Add(-1) < 0 || c.counted
}

// doubt notes that the claim may have been settled so, or not.
func (c *claim) doubt(v verdict) {
	if !c.unsure {
		c.unsure, c.as = true, v
	}
}

// past is the answer to those that come to a claim which somebody settles or has settled.
func (c *claim) past(k Key) error {
	c.mu.Lock()
	state, lost := c.state, c.lost
	c.mu.Unlock()
	if lost == nil && state == settling {
		lost = c.session.err() // whoever settles it will be told so
	}
	if lost != nil {
		return lost
	}
	return fmt.Errorf("%w: %v", ErrSettled, k)
}

// lose is how its settler ends a claim that is not known to be ours any more. It returns how
// many the observer is to be told of: none if the end of the session has counted it.
func (c *claim) lose(err error) (untold int) {
	c.mu.Lock()
	c.state, c.lost = settled, err
	c.mu.Unlock()
	c.ended()
	if c.counted {
		return 0
	}
	return 1
}

// loseAll is lose for several claims of one session.
func (l *session) loseAll(claims []*claim, err error) {
	untold := 0
	for _, c := range claims {
		untold += c.lose(err)
	}
	if untold > 0 {
		l.tellLost(untold, whyLost(err))
	}
}

func whyLost(err error) string {
	if lost := (*LostError)(nil); errors.As(err, &lost) {
		return lost.Reason
	}
	return reason(err)
}

// finish is how its settler gives a claim up.
func (c *claim) finish(to claimState) {
	c.mu.Lock()
	end := c.end
	untold := false
	switch {
	case to == settled:
		c.state = settled
	case end != nil: // it stays settling
	default:
		c.state = held
		late := c.session.held.Add(1) <= 0 // the session has ended, and has counted those that were held
		untold = late && !c.counted
		c.counted = late
	}
	c.mu.Unlock()
	switch {
	case to == settled:
		c.ended()
	case end != nil:
		c.session.add(*end, time.Second)
	case untold:
		c.session.tellLost(1, whyLost(c.session.err()))
	}
}

// ended tells the Take of a claim that was settled or lost.
func (c *claim) ended() {
	if c.taken != nil {
		c.taken.settled(c.session)
	}
}

// beginEnd is begin at the end of a scope, after which nobody settles the claim: if somebody is
// at it now, and nothing comes of that, it is settled so. The item goes back after a Nack of which nothing came,
// also if the scope has ended well: it would be lost otherwise. beginEnd returns what becomes of the item.
func (c *claim) beginEnd(end settlement) (settlement, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end.claim, end.last = c, true
	if end.verdict == done && c.back != nil {
		end.verdict, end.why = c.back.verdict, c.back.why
	}
	switch c.state {
	case held:
		c.takeLocked()
		return end, true
	case settling:
		if c.end == nil {
			c.end = &end
		}
	}
	return end, false
}
