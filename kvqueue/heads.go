package kvqueue

import (
	"context"
	"math"
)

// window is how many hints the first look for ready items spans. A look visits what was
// deleted there, too, so it is small; it grows while nothing is found.
const window = 256

// A ready is a ready item.
type ready struct {
	key Key
	rev Rev // of its key in the store
	rec record
	// together is how many were claimed in one transaction, of what was claimed by others.
	together int
}

// A look is what was seen of the front of a queue at one revision.
type look struct {
	*snapshot
	heads []ready // the first ready items
}

// heads looks for the first ready items, most at the most, and reads more at the same
// revision. That nothing is ready it concludes only from all that is from the floor to
// the revision.
func (q *Queue) heads(ctx context.Context, most int, more ...Range) (*look, error) {
	from, span := q.lastFloor.Load(), uint64(window)
	for {
		end := from + span
		if end < from {
			end = math.MaxUint64
		}
		s, err := q.read(ctx, append(more, Range{Begin: q.lay.from("q", from), End: q.lay.from("q", end), Limit: most})...)
		if err != nil {
			return nil, err
		}
		l := &look{snapshot: s}
		if l.heads, err = decodeReady(s.of[len(more)]); err != nil {
			return nil, err
		}
		q.lastFloor.Store(s.head.floor)
		switch {
		case s.head.floor < from || s.head.floor >= end: // an item has come back to a place before, or they are all behind
			from, span = s.head.floor, window
			continue
		case len(l.heads) == 0 && end <= s.now(): // what is there has a hint before the revision
			// From the floor again: an item may have come to a place that was looked at before.
			from, span = s.head.floor, span*4
			continue
		}
		first := s.now()
		if len(l.heads) > 0 {
			first = l.heads[0].key.hint()
		}
		q.raiseFloor(ctx, s, first)
		return l, nil
	}
}

func decodeReady(r Result) ([]ready, error) {
	heads := make([]ready, len(r.Pairs))
	for i, p := range r.Pairs {
		rec, _, err := decodeRecord(p.Value)
		if err != nil {
			return nil, err
		}
		heads[i] = ready{key: keyOf(p.Key), rev: p.Rev, rec: rec}
	}
	return heads, nil
}
