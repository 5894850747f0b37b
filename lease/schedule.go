package lease

import (
	"math"
	"math/bits"
	"time"
)

// A schedule is when a lease is renewed, and with which others. It is arithmetic: its
// methods are told the time and the dice.
type schedule struct {
	length time.Duration // what renewals ask for
	early  time.Duration // it may be renewed along with others from then on
	due    time.Duration // it is to be renewed then

	failures int  // renewals in a row that had no success
	lot      int  // with whom it is renewed after a failure: drawn anew each time
	alone    bool // the next renewal takes no others along
}

// lots are into how many lots the leases are divided whose renewals have failed, by the
// number of failures in a row. If one lease has the call of all the others fail, it meets
// few of them again.
var lots = [...]int{1, 8, 64}

// granted plans the next renewal after one that has given the term t. The usual length
// counts where t is longer: the store may hold the holder for gone if it hears nothing.
func (s *schedule) granted(t Term, jitter float64) {
	t.Length = min(t.Length, s.length)
	s.early, s.due = t.Renewal(jitter)
	s.failures, s.lot, s.alone = 0, 0, false
}

// failed plans the next renewal after one that was sent and has failed. dice is from 0 to 1,
// without 1.
func (s *schedule) failed(now, sent time.Duration, dice float64) {
	s.failures++
	s.alone = false
	s.lot = int(dice * float64(lots[min(s.failures, len(lots)-1)]))
	s.due = max(now, Term{Length: s.length}.Again(sent))
	s.early = s.due - s.length/60 // those that failed at about the same time go together
}

// skipped plans the next renewal after one that has left the lease out: at once, alone; a
// lease that was alone already has failed.
func (s *schedule) skipped(now, sent time.Duration, dice float64) {
	alone := s.alone
	s.failed(now, sent, dice)
	if !alone {
		s.alone, s.early, s.due = true, now, now
	}
}

// A class is a sort of leases that are renewed by one call. They are of about the same
// length, so that a call for long leases, which may take long, holds up no short ones;
// and after a failure they have about the same time left.
type class struct {
	length int
	left   int
	lot    int
	alone  *Lease // nil: with others
}

// class returns the class of a lease that is believed for the time left.
func (s *schedule) class(l *Lease, left time.Duration) class {
	c := class{length: magnitude(s.length)}
	if s.failures > 0 {
		c.left, c.lot = 1+magnitude(left), s.lot
	}
	if s.alone {
		c.alone = l
	}
	return c
}

// magnitude is the same for times of which the longer is less than twice the shorter.
func magnitude(d time.Duration) int { return bits.Len64(uint64(max(d, 0) / time.Millisecond)) }

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// deadline returns until when the holder believes; never if its owner has ended that, so
// that the renewals go on.
func (l *Lease) deadline() time.Duration {
	if l.ended.Load() != nil {
		return never
	}
	return time.Duration(l.until.Load())
}

// patience returns how long a call may take that is sent now for length more.
func (l *Lease) patience(now, length time.Duration) time.Duration {
	return max(min(length/6, l.deadline()-now), 0)
}
