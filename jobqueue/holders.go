package jobqueue

import (
	"context"
	"iter"

	"github.com/ambit-go/ambit/internal/bridge"
)

// A holder is a scope that has taken jobs of a queue, or waits for some. It
// exists only as long: a scope that lives for a year keeps nothing of a queue of
// which it holds nothing any more, and the queue nothing of the scope.
type holder[K comparable, T any] struct {
	q     *Queue[K, T]
	scope context.Context
	atEnd bridge.Registration // has ScopeEnds called at the end of scope
	jobs  list[K, T]          // what scope has taken and not settled, in the order of taking
	waits int                 // calls of Take with the ctx of scope that are on the list of waiters
	kept  bool                // a worker of Consume uses it until its scope ends
	next  *holder[K, T]       // in holders.free
}

// holders are the holders of a queue, one for each scope.
type holders[K comparable, T any] struct {
	last   *holder[K, T]                         // the one that was used last; it is not in others
	others table[context.Context, *holder[K, T]] // by scope
	free   *holder[K, T]                         // to be used again, chained by next
	spare  int                                   // how many holders are in free
}

// maxSpareHolders is how many holders are kept to be used again.
const maxSpareHolders = 16

// find returns the holder of scope, nil if there is none.
func (s *holders[K, T]) find(scope context.Context) *holder[K, T] {
	if s.last != nil && s.last.scope == scope {
		return s.last
	}
	if len(s.others.m) == 0 { // measured: to look for an interface in an empty map costs as much as in a full one
		return nil
	}
	return s.others.get(scope)
}

// add adds h, whose scope has no holder yet.
func (s *holders[K, T]) add(h *holder[K, T]) {
	if old := s.last; old != nil {
		s.others.put(old.scope, old)
	}
	s.last = h
}

// get returns a holder that nobody uses.
func (s *holders[K, T]) get() *holder[K, T] {
	h := s.free
	if h == nil {
		return new(holder[K, T])
	}
	s.free, h.next = h.next, nil
	s.spare--
	return h
}

// remove removes h, which is taken off its scope, and keeps it for another one.
// Nothing may refer to h any more.
func (s *holders[K, T]) remove(h *holder[K, T]) {
	if s.last == h {
		s.last = nil
	} else {
		s.others.remove(h.scope)
	}
	h.scope, h.kept = nil, false // all else is empty
	if s.spare < maxSpareHolders {
		s.free, h.next = h, s.free
		s.spare++
	}
}

// all returns all holders, in any order.
func (s *holders[K, T]) all() iter.Seq[*holder[K, T]] {
	return func(yield func(*holder[K, T]) bool) {
		if s.last != nil && !yield(s.last) {
			return
		}
		for _, h := range s.others.m {
			if !yield(h) {
				return
			}
		}
	}
}

// holderLocked returns the holder of scope, and makes one if there is none. It
// returns nil if scope has ended.
func (q *Queue[K, T]) holderLocked(scope context.Context) *holder[K, T] {
	if h := q.holders.find(scope); h != nil {
		return h
	}
	h := q.holders.get()
	h.q, h.scope = q, scope // now: ScopeEnds may be called before registering returns
	if !h.register() {
		return nil
	}
	q.holders.add(h)
	return h
}

// register has ScopeEnds called at the end of the scope of h. It reports false if
// that has ended.
func (h *holder[K, T]) register() bool {
	if h.atEnd != nil {
		return h.atEnd.Renew(h.scope)
	}
	h.atEnd = bridge.AtEnd(h.scope, h)
	return h.atEnd != nil
}

// dropIdleLocked removes h if it is idle, which means that it neither holds a job
// nor waits for one, nor is kept for the next, and takes it off its scope. If that has
// begun to end, ScopeEnds is being called with h at this moment, on another
// goroutine or below us on the stack: then h is left to it. The lock of the scope
// decides which of the two it is, so nobody uses h again while ScopeEnds has it.
//
// A holder that has been removed already may be given: that does nothing.
func (q *Queue[K, T]) dropIdleLocked(h *holder[K, T]) {
	if h.jobs.len == 0 && h.waits == 0 && !h.kept && h.scope != nil && h.atEnd.Recall() {
		q.holders.remove(h)
	}
}
