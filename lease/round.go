package lease

import (
	"context"
	"slices"
	"time"
)

// This file decides which leases are renewed at one time, and by which calls.

const (
	// mostAlone is how many calls that take no other lease along are on their way at most.
	mostAlone = 32
	// aloneAgain is how long a lease waits that has found no place among these.
	aloneAgain = 50 * time.Millisecond
)

// A batch is the leases of one class that may be renewed now.
type batch[T any] struct {
	class  class
	due    bool          // one of them is due; else it is too early
	next   time.Duration // when the first is due
	leases []*Lease
}

// roundLocked has calls made for what is to be renewed now, and returns the leases whose time
// has run out.
func (k *Keeper[T]) roundLocked(now time.Duration) (late []*Lease) {
	if now < k.next { // it only looks for a suspend
		return nil
	}
	k.next = never
	batches := map[class]*batch[T]{}
	for l, e := range k.kept {
		switch {
		case l.givenUp(): // whoever has noticed it is about to tell
			continue
		case now >= l.deadline():
			late = append(late, l)
			continue
		}
		e.overdue(l, now)
		if e.call != nil || l.set.fixed || now < e.early {
			k.next = min(k.next, e.next(l))
			continue
		}
		c := e.class(l, l.deadline()-now)
		if batches[c] == nil {
			batches[c] = &batch[T]{class: c, next: never}
		}
		batches[c].add(l, e, now)
	}
	for _, b := range batches {
		k.boardLocked(b, now)
	}
	return late
}

// next returns when the keeper has to look at the lease at the latest.
func (e *entry[T]) next(l *Lease) time.Duration {
	switch {
	case e.call != nil:
		return min(e.call.until, l.deadline())
	case l.set.fixed:
		return l.deadline()
	}
	return min(e.due, l.deadline())
}

func (b *batch[T]) add(l *Lease, e *entry[T], now time.Duration) {
	b.leases = append(b.leases, l)
	b.due = b.due || now >= e.due
	b.next = min(b.next, e.next(l))
}

// boardLocked divides a batch into calls, if it is time, and has them made. Their context is
// nobody's: a renewal goes on whatever is cancelled or shut down, until nobody needs it.
func (k *Keeper[T]) boardLocked(b *batch[T], now time.Duration) {
	switch {
	case !b.due:
		k.next = min(k.next, b.next)
		return
	case b.class.alone != nil && k.alone >= mostAlone:
		k.next = min(k.next, now+aloneAgain)
		return
	case b.class.alone != nil:
		k.alone++
	}
	most := k.set.most
	if most == 0 {
		most = len(b.leases)
	}
	for leases := range slices.Chunk(b.leases, most) {
		c := k.newCallLocked(context.Background(), leases, 0, now)
		c.alone = b.class.alone != nil
		k.next = min(k.next, c.until)
		k.startLocked("renewal", func() { k.send(c) })
	}
}
