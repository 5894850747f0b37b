package kvqueue

import (
	"context"
	"math"
)

// window is how many hints a handle's first look for ready items spans. A look visits what was
// deleted there, too, so it is small; it grows while nothing is found.
const window = 256

// maxSpan is how many hints the first read of a look spans at most.
const maxSpan = 4096

// nextSpan returns how many hints the next look is to span first, after one that has found the
// first items: a hint may hold one item or sixty, and a store visits all of a range whatever
// its limit is. limited: there was more in the span; whole: it held all that there is.
func nextSpan(floor, span uint64, first []ready, limited, whole bool) uint64 {
	switch {
	case limited:
		return min(max(span/2, first[len(first)-1].key.hint()-floor+1), maxSpan)
	case !whole:
		return min(span*2, maxSpan)
	default:
		return min(span, maxSpan)
	}
}

// A ready is a ready item.
type ready struct {
	key  Key
	rev  Rev // of its key in the store
	rec  record
	turn int // where it is among those that were looked at with it, if items of groups are among them
	// together is how many were claimed in one transaction, of what was claimed by others.
	together int
}

// A look is what was seen of the front of a queue at one revision.
type look struct {
	*snapshot
	front []ready // the first ready items
	// grouped says that items of groups are the first of each turn.
	grouped bool
}

// front looks for the first ready items, most at the most, and reads more at the same
// revision. Those without a group and the first ones of groups are in turns. It concludes that nothing is ready
// only from all that is from the floor to the revision.
func (q *Queue) front(ctx context.Context, most int, more ...Range) (*look, error) {
	from, span := q.lastFloor.Load(), max(q.lastSpan.Load(), 1)
	behind, grouped := q.turns.next()
	for limit := most; ; {
		end := from + span
		if end < from {
			end = math.MaxUint64
		}
		ready := Range{Begin: q.lay.from("q", from), End: q.lay.from("q", end), Limit: limit}
		s, err := q.readBy(ctx, q.glance, append(more, q.lay.markers(behind, most), ready)...)
		if err != nil {
			return nil, err
		}
		marked, found := s.of[len(more)], s.of[len(more)+1]
		l := &look{snapshot: s, front: q.lay.readyOf(found), grouped: grouped}
		if left := most - len(l.front); left > 0 && found.More { // others have written what came instead
			limit += left
			continue
		}
		q.lastFloor.Store(s.head.floor)
		switch {
		case s.head.floor < from || s.head.floor >= end: // an item has come back to a place before, or they are all behind
			from, span = s.head.floor, window
			continue
		case len(l.front) == 0 && end <= s.now(): // what is there has a hint before the revision
			// From the floor again: an item may have come to a place that was looked at before.
			from, span = s.head.floor, span*4
			continue
		case len(l.front) < most && end <= s.now() && span < maxSpan: // the last look was for fewer
			span = maxSpan
			continue
		}
		first := s.now()
		if len(l.front) > 0 {
			first = l.front[0].key.hint()
			q.lastSpan.Store(nextSpan(from, span, l.front, found.More, end > s.now()))
		}
		q.raiseFloor(s, first)
		return l, q.addHeads(ctx, l, most, marked, behind)
	}
}

// readyOf returns the ready items of a result. A pair that this package did not write is left out, and
// named by Audit.
func (l layout) readyOf(r Result) []ready {
	first := make([]ready, 0, len(r.Pairs))
	for _, p := range r.Pairs {
		k, ok := l.itemIn("q", p.Key)
		if rec, _, err := decodeRecord(p.Value); ok && err == nil {
			first = append(first, ready{key: k, rev: p.Rev, rec: rec})
		}
	}
	return first
}
