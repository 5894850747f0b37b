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

// A round is what a loop has to do at one time.
type round[T any] struct {
	late   []*Lease // whose time has run out
	losses []func()
	calls  []*call[T]
}

// A batch is the leases of one class that may be renewed now.
type batch[T any] struct {
	class  class
	due    bool          // one of them is due; else it is too early
	next   time.Duration // when the first is due
	leases []*Lease
}

// round decides what is to be done now. Calls are children of ctx. It returns false if
// nothing is kept any more: then the loop has ended.
func (k *Keeper[T]) round(ctx context.Context, now time.Duration) (r round[T], ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.losses, k.losses = k.losses, nil; len(k.kept) == 0 && len(r.losses) == 0 {
		k.runs = false
		return r, false
	}
	if now < k.next { // the loop only looked for a suspend
		return r, true
	}
	k.next = never
	batches := map[class]*batch[T]{}
	for l, e := range k.kept {
		switch {
		case l.givenUp(): // whoever has noticed it is about to tell
			continue
		case now >= l.deadline():
			r.late = append(r.late, l)
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
		r.calls = append(r.calls, k.boardLocked(ctx, b, now)...)
	}
	return r, true
}

// next returns when the loop has to look at the lease at the latest.
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

// boardLocked divides a batch into calls, if it is time.
func (k *Keeper[T]) boardLocked(ctx context.Context, b *batch[T], now time.Duration) (calls []*call[T]) {
	switch {
	case !b.due:
		k.next = min(k.next, b.next)
		return nil
	case b.class.alone != nil && k.alone >= mostAlone:
		k.next = min(k.next, now+aloneAgain)
		return nil
	case b.class.alone != nil:
		k.alone++
	}
	most := k.set.most
	if most == 0 {
		most = len(b.leases)
	}
	for leases := range slices.Chunk(b.leases, most) {
		c := k.newCallLocked(ctx, leases, 0, now)
		c.alone = b.class.alone != nil
		k.next = min(k.next, c.until)
		calls = append(calls, c)
	}
	return calls
}
