package lease

import (
	"math"
	"time"
)

// A Term is the time for which something was granted.
//
//	sent := clock.Now()                                          // before the request
//	granted, err := store.Acquire(ctx, key, 15*time.Second)      // the request
//	term := lease.Term{Granted: sent, Length: 15 * time.Second}  // starts no later than the store's own
//
// A Term is a value without a clock: its methods are arithmetic. A [Keeper] uses the
// same methods, so a program with a loop of its own may take the formula from here.
//
// The zero Term is over, and so is a term whose Length is 0 or less.
type Term struct {
	// Granted is the time on a [Clock] at which the request was sent. The store can grant
	// only later, so the term of the store ends after [Term.End].
	Granted time.Duration
	// Length is the length of time that the request asked for and the store has granted.
	Length time.Duration
}

const (
	// minMargin is the fixed part of the margin: a process needs that long to cancel
	// its contexts, and a goroutine that long to see it, on a machine that is busy.
	minMargin = 100 * time.Millisecond
	// maxMargin bounds the part of the margin for the work of stopping, which takes no
	// longer because a term is long.
	maxMargin = 2 * time.Second
)

// Margin returns how long before the end of a term of that length its holder stops to
// believe.
//
//	lease.Margin(10 * time.Second) // 1.1 s
//
// # Details
//
// The margin is a hundredth of the length, and a tenth of it on top, which is at least 100
// ms and at most 2 s.
//
// The two parts have two reasons. The clocks of holder and store may run at different
// speeds, and the difference grows with the length: a hundredth is far more than any clock
// that is disciplined, or a quartz that is not, is wrong by. Stopping takes time as well: a
// renewal that failed has to be noticed, contexts have to be cancelled, and a write on its
// way has to arrive or not.
func Margin(length time.Duration) time.Duration {
	return max(length, 0)/100 + min(max(length/10, minMargin), maxMargin)
}

// End returns the earliest time at which the store may grant the thing to another
// holder.
func (t Term) End() time.Duration { return after(t.Granted, t.Length) }

// Believed returns the time until which the holder believes: the [Margin] before the
// end. A term that is shorter than its margin is believed at no time, and Believed
// returns Granted.
func (t Term) Believed() time.Duration { return after(t.Granted, t.Length-Margin(t.Length)) }

// Renewal returns when to renew: the request is due at the time due, and a request that is
// sent for other terms takes this one along from the time early on.
//
//	early, due := t.Renewal(rand.Float64())
//
// # Details
//
// jitter, from 0 to 1, spreads the requests of many holders. A renewal is due 0.30 to 0.32
// of the length after Granted, and early is at 0.27. A third of the length leaves room for
// a second request after a first one that ran out of its time, and for a third. The renewal
// stays below the third because a store may count a holder as silent that it has not heard
// of for a third of the length.
func (t Term) Renewal(jitter float64) (early, due time.Duration) {
	length := max(t.Length, 0)
	if !(jitter > 0) { // nor a NaN
		jitter = 0
	}
	spread := time.Duration(min(jitter, 1) * float64(length/50))
	return after(t.Granted, length/100*27), after(t.Granted, length/10*3+spread)
}

// Again returns when to renew again after a renewal that was sent at the time sent and
// failed: a twelfth of the length later. Between the first renewal and the end of the
// belief that is time for six or seven requests.
func (t Term) Again(sent time.Duration) time.Duration { return after(sent, t.Length/12) }

// Patience returns how long one request may take that is sent at the time now: a sixth
// of the length, and no longer than the term is believed. It returns 0 when the holder
// has to give up: an answer would come too late.
func (t Term) Patience(now time.Duration) time.Duration {
	return max(min(t.Length/6, t.Believed()-now), 0)
}

// after returns the time d after t; it does not overflow. A negative d counts as 0.
func after(t, d time.Duration) time.Duration {
	if d = max(d, 0); t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}
