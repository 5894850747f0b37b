package kvqueue

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"time"
)

// A Filter says which items of a queue are meant: those that match all of its fields. The zero value means all.
type Filter struct {
	Why    string    // what the last error contains, of dead letters; "": anything
	Before time.Time // added before that time, by the clock of the producer; zero: whenever
	After  time.Time // added after that time; zero: whenever
	Behind Key       // with greater keys than this one; zero: from the first
	Most   int       // so many at the most, the first of them; 0: all
}

// check returns an error if the filter makes no sense for items that are in a place.
func (f *Filter) check(kind string) error {
	switch {
	case f.Most < 0:
		return invalid("Filter.Most", "%d is less than 0: 0 is all", f.Most)
	case kind == "q" && f.Why != "":
		return invalid("Filter.Why", "ready items have no error: leave it out, or use DiscardAll or RequeueAll")
	case !f.Before.IsZero() && !f.After.IsZero() && !f.After.Before(f.Before):
		return invalid("Filter.After", "nothing was added after %v and before %v", f.After, f.Before)
	}
	return nil
}

// has reports whether the filter means an item. One of which it is not known when it was added is neither before
// nor after a time.
func (f *Filter) has(k Key, r record, why string) bool {
	at := r.addedAt() // zero is after nothing
	return bytes.Compare(k[:], f.Behind[:]) > 0 && strings.Contains(why, f.Why) &&
		(f.Before.IsZero() || !at.IsZero() && at.Before(f.Before)) && (f.After.IsZero() || at.After(f.After))
}

// filtered yields the ready items, first those of no group, or the dead letters, that a filter means, in order, however
// many: Most is not looked at. Keys and records that this package did not write are left out, and named by Audit.
func (q *Queue) filtered(ctx context.Context, kind string, f Filter) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		if err := f.check(kind); err != nil {
			yield(Pair{}, err)
			return
		}
		places := []iter.Seq2[Pair, error]{q.pages(ctx, kind, f.Behind.hint())}
		if kind == "q" {
			places = append(places, q.readyGrouped(ctx))
		}
		for _, items := range places {
			for p, err := range items {
				if err != nil {
					yield(p, err)
					return
				}
				if r, why, err := decodeDead(p.Value); err != nil || !f.has(keyOf(p.Key), r, why) {
					continue
				}
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}
