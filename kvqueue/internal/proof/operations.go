package proof

import (
	"github.com/anishathalye/porcupine"
)

// This file makes moves of what is told, and says between which times they may have been done.

// operations are those of a telling.
type operations struct {
	*telling
	h       *History
	items   map[string]int // the places of all items, by their keys
	values  map[string]string
	claim   map[fenced]*claimed // that clients were handed
	settled map[*claimed]bool   // it is known how they have ended
	all     []porcupine.Operation
}

// make returns all steps, so far as they may have been done.
func (o *operations) make() []porcupine.Operation {
	o.values, o.claim, o.settled = map[string]string{}, map[fenced]*claimed{}, map[*claimed]bool{}
	for v, k := range o.keys {
		o.values[k] = v
	}
	for _, c := range o.claims {
		if !c.hidden {
			o.claim[fenced{c.Key, c.Fence}] = c
		}
	}
	for _, a := range o.asked {
		o.ofAsked(a)
	}
	for _, c := range o.claims {
		if item, there := o.items[c.Key]; there { // else nothing has come of it, nor of its enqueue
			o.ofClaim(c, item)
		}
	}
	return o.all
}

func (o *operations) add(begin, end int64, m move) {
	o.all = append(o.all, porcupine.Operation{Input: m, Call: begin, Return: end})
}

// perhaps adds an end of a claim of which it is not known whether it was that.
func (o *operations) perhaps(c *claimed, begin int64, m move) {
	soonest, latest := o.next(c)
	if begin = max(begin, soonest); begin <= latest && !o.excludes(c, m.what) { // else another end came before
		o.add(begin, latest, m)
	}
}

// ofAsked adds what a client has asked for.
func (o *operations) ofAsked(a *asked) {
	key := o.keys[a.Value]
	m := move{what: a.What, value: a.Value, item: o.items[key], sure: a.end < never}
	switch a.What {
	case Empty, Requeue:
		o.add(a.ID, a.end, m)
	case repeat:
		m.item = o.items[a.key]
		o.add(a.ID, a.end, m)
	case Enqueue:
		if m.sure = true; key != "" { // else nothing has come of it
			o.add(a.ID, a.end, m)
		}
	default:
		c := o.claim[fenced{a.Key, a.Fence}]
		switch {
		case c == nil:
			o.fault("%v ends no claim", m)
		case m.sure:
			m.claim, m.fenced, o.settled[c] = c.number, true, true
			o.add(a.ID, a.end, m)
		default:
			m.claim, m.fenced = c.number, true
			o.perhaps(c, a.ID, m)
		}
	}
}

// ofClaim adds a claim, and that it may have come back as its session has ended, or as nobody was
// handed it.
func (o *operations) ofClaim(c *claimed, item int) {
	m := move{what: handed, value: o.values[c.Key], item: item, claim: c.number, attempt: byte(c.Attempt), fenced: c.Fence > 0, sure: c.end < never}
	if c.hidden {
		m.what = hidden
	}
	o.add(c.begin, c.end, m)
	m.attempt, m.sure = 0, false
	if m.what = Return; c.hidden {
		o.perhaps(c, c.begin, m)
	}
	if at, ended := o.ended(c); ended && !o.settled[c] {
		m.what = crash
		o.perhaps(c, max(c.begin, at), m)
	}
}

// next returns between which times the end of a claim is to be looked for, if it is not known when it
// was. The item goes back as late as can be, just before it is claimed again or, if it is dead,
// put back: that is an order, too, as one that is ready only keeps others from being claimed.
// A claim whose fence is not known may have been done before or after each of the others, or not at all:
// its end has no bound.
func (o *operations) next(c *claimed) (soonest, latest int64) {
	if c.Fence == 0 {
		return 0, never
	}
	defer func() {
		if groupOf(o.values[c.Key]) != "" { // a claim keeps those from being claimed that have come before its item meanwhile
			soonest = 0
		}
	}()
	soonest, latest = never, never
	for _, d := range o.claims {
		switch {
		case d.Key != c.Key || d == c:
		case d.Fence == 0:
			soonest = min(soonest, d.begin)
		case d.Fence > c.Fence:
			soonest, latest = min(soonest, d.begin), min(latest, d.end)
		}
	}
	for _, a := range o.asked {
		if a.What == Requeue && a.Key == c.Key && a.end > c.begin {
			soonest = min(soonest, a.ID)
		}
	}
	if soonest == never {
		soonest = 0
	}
	return soonest, latest
}

// excludes reports whether what came later says that a claim did not end so: an item that was
// claimed again was not gone, and one of which nothing is left in the end is gone.
func (o *operations) excludes(c *claimed, how string) bool {
	again, known := false, o.last > c.end
	for _, d := range o.claims {
		if d.Key == c.Key && d != c {
			again = again || d.Fence > c.Fence
			known = known && d.Fence > 0
		}
	}
	if how == Ack {
		return again
	}
	return known && !again && c.Fence > 0
}

// ended reports whether the session of a claim may have ended, and before which time it has not.
func (o *operations) ended(c *claimed) (at int64, ended bool) {
	who := o.owners[c.session]
	last := o.latest[who] == c.session
	if at, ended = o.over[who]; last && (o.h.Steady || !ended) {
		return at, ended
	}
	if o.h.Exact {
		return o.lapsed[fenced{c.Key, c.Fence}], true
	}
	return 0, true
}
