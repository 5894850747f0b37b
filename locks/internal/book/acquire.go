package book

import (
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/locks"
)

// Acquire is Store.Acquire. client is the process as the store names it.
func (r *Resource) Acquire(now int64, client string, requests []locks.Request) locks.Turn {
	now = r.tick(now)
	r.reap(now)
	answers := make([]locks.Answer, len(requests))
	for i := range requests {
		answers[i] = r.enter(now, client, &requests[i])
	}
	// Only now, so that requests which came together are granted in their order.
	for i := range requests {
		if answers[i].Err == nil {
			answers[i] = r.settle(now, &requests[i])
		}
	}
	for i := range requests { // what does not wait leaves nothing behind
		if answers[i].Err == nil && !answers[i].Granted && !requests[i].Wait {
			r.remove(requests[i].ID)
		}
	}
	return locks.Turn{Now: Time(now), Next: Time(r.next(now)), Size: r.Size, Answers: answers}
}

// enter adds a request to the queue, or keeps alive the one that is there.
func (r *Resource) enter(now int64, client string, q *locks.Request) locks.Answer {
	i := r.find(locks.Ref{ID: q.ID})
	if i >= 0 && r.Entries[i].Held { // the answer was lost: the record may be another's by now
		return locks.Answer{}
	}
	if err := r.admit(now, q); err != nil {
		r.remove(q.ID)
		return locks.Answer{Err: err}
	}
	if i < 0 {
		r.Ticket++
		i = len(r.Entries)
		r.Entries = append(r.Entries, Entry{ID: q.ID, Ticket: r.Ticket})
	}
	e := &r.Entries[i]
	asked := Entry{
		ID: q.ID, Version: q.Version, Owner: q.Owner, Client: client, Shared: q.Shared, Barging: q.Barging,
		Permits: max(q.Permits, 1), Most: q.Size, Ticket: e.Ticket, Lease: micros(q.Lease), LockDelay: micros(q.LockDelay),
		Expires: now + micros(locks.WaiterLife) + r.Slack, DeleteOnRelease: q.DeleteOnRelease,
	}
	if !asked.keeps(e) {
		*e = asked
	}
	return locks.Answer{}
}

// keeps says whether the request need not be written again: it is the same as it was, and
// was kept alive a moment ago. To write costs a store more than to look. A time far ahead is of
// a clock that was set back since, and is written anew.
func (e *Entry) keeps(was *Entry) bool {
	same, since := *e, e.Expires-was.Expires
	same.Expires = was.Expires
	return same == *was && max(since, -since) < micros(locks.WaiterLife/6)
}

// admit makes the record if there is none, and says what the request has against it.
func (r *Resource) admit(now int64, q *locks.Request) error {
	size := q.Size
	if q.Kind != locks.Semaphore {
		size = 1
	}
	if !r.Exists {
		if q.OnlyIfExists {
			return locks.ErrNotFound
		}
		r.Exists, r.Kind, r.Size, r.Lease, r.Fair = true, q.Kind, max(size, 1), micros(q.Lease), !q.Barging
		r.CreatedBy, r.CreatedAt, r.UpdatedBy, r.UpdatedAt, r.Version = q.Owner, now, q.Owner, now, q.Version
		r.DeleteOnRelease = q.Brief
		if r.Retention = micros(q.Retention); r.Retention > 0 {
			r.Due = now + r.Retention
		}
	}
	if r.Kind != q.Kind {
		return locks.Conflict("it is a %s, not a %s", r.Kind, q.Kind)
	}
	if size != 0 && size != r.Size && q.Strict {
		return locks.Conflict("it has size %d, not %d", r.Size, size)
	}
	if size != 0 && size != r.Size && q.Resize {
		r.Size, r.UpdatedBy, r.UpdatedAt = size, q.Owner, now
		r.DeleteOnRelease = r.DeleteOnRelease && r.Retention == 0 // what a Create has said stays
		r.keep()
	}
	if max(q.Permits, 1) > r.Size {
		return locks.Conflict("%d permits are asked for, and it has %d in all", q.Permits, r.Size)
	}
	return nil
}

// settle grants the request if it is its turn, and says how it stands.
func (r *Resource) settle(now int64, q *locks.Request) locks.Answer {
	e := &r.Entries[r.find(locks.Ref{ID: q.ID})]
	switch {
	case e.Held && !e.Revoked: // asked again: the answer was lost
		e.Expires = max(e.Expires, now+micros(q.Lease)+r.Slack)
	case !e.Held && r.fits(now, e):
		r.give(now, e, q)
	}
	if e.Held {
		return locks.Answer{Granted: true, Grant: e.Grant()}
	}
	a := locks.Answer{}
	for i := range r.Entries {
		other := &r.Entries[i]
		if !other.Held && other.Ticket < e.Ticket {
			a.Place++
		} else if other.Held && a.Holder == "" {
			a.Holder = other.Owner
		}
	}
	return a
}

func (r *Resource) give(now int64, e *Entry, q *locks.Request) {
	slot := r.slot()
	r.Fence = max(r.Fence+1, now)
	e.Held, e.Slot, e.Fence, e.Acquired, e.Expires = true, slot, r.Fence, now, now+e.Lease+r.Slack
	r.UpdatedBy, r.UpdatedAt, r.LockDelay = e.Owner, now, e.LockDelay
	if q.Data != nil {
		r.Data = q.Data
	}
}

func (r *Resource) remove(id string) {
	r.Entries = slices.DeleteFunc(r.Entries, func(e Entry) bool { return e.ID == id })
}

// String is for messages of tests.
func (r *Resource) String() string {
	return fmt.Sprintf("%s %q/%q size %d, held %d, entries %d, fence %d", r.Kind, r.Tenant, r.Key, r.Size, r.Busy(), len(r.Entries), r.Fence)
}
