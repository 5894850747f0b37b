// Package book decides who gets a lock. A Resource is all that a store knows of one
// lock; its methods are the steps of a store, as plain functions of that and of the
// time. There is no clock, no goroutine and no lock in here. Memory, SQLite, PostgreSQL,
// MySQL, etcd and DynamoDB read a resource, take a step, and write it back in one atomic step
// of their own. Redis has the same steps in Lua.
//
// Times are microseconds since 1970 by the clock of the store.
package book

import (
	"slices"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// A Resource is one lock: its record, and those that hold it or wait for it. The names of the
// fields are those of its JSON, which stores have written.
type Resource struct {
	locks.Name `json:"-"`
	// Exists says whether there is a record. A store deletes the resource when it is
	// false after a step.
	Exists          bool       `json:",omitempty"`
	Kind            locks.Kind `json:",omitempty"`
	Size            int        `json:",omitempty"`
	Lease           int64      `json:",omitempty"`
	Fair            bool       `json:",omitempty"`
	Data            *string    `json:",omitempty"`
	DeleteOnRelease bool       `json:",omitempty"`
	LockDelay       int64      `json:",omitempty"` // of the last lease that was granted
	Version         string     `json:",omitempty"`
	Fence           int64      `json:",omitempty"` // the last that was given; never goes back
	Ticket          int64      `json:",omitempty"` // the last that was given
	Shut            int64      `json:",omitempty"` // nobody is granted anything before
	CreatedBy       string     `json:",omitempty"`
	CreatedAt       int64      `json:",omitempty"`
	UpdatedBy       string     `json:",omitempty"`
	UpdatedAt       int64      `json:",omitempty"` // of the last step that has changed a lease or the record
	// Retention is how long the record stays when nobody uses it any more, 0 until it is
	// deleted. Due is when to look for that: never too late, and 0 for never.
	Retention int64 `json:",omitempty"`
	Due       int64 `json:",omitempty"`
	// Slack is how far behind now the clock of the store may be where it is read as an
	// interval, and is added to all that ends. Not stored.
	Slack int64 `json:"-"`
	// Entries are in the order of their tickets. A held entry keeps its ticket.
	Entries []Entry `json:",omitempty"`
}

// An Entry is a lease, or a request that waits.
type Entry struct {
	ID      string `json:",omitempty"`
	Version string `json:",omitempty"`
	Prev    string `json:",omitempty"` // the version that the last renewal has replaced
	Owner   string `json:",omitempty"`
	Client  string `json:",omitempty"` // the process, as the store names it for its hints

	Held    bool `json:",omitempty"`
	Revoked bool `json:",omitempty"`
	Shared  bool `json:",omitempty"`
	Barging bool `json:",omitempty"`
	Permits int  `json:",omitempty"`
	Most    int  `json:",omitempty"` // the size that a request names, which it is granted within; 0 for none
	Slot    int  `json:",omitempty"` // of a held one

	Ticket    int64 `json:",omitempty"`
	Fence     int64 `json:",omitempty"` // of a held one
	Lease     int64 `json:",omitempty"`
	LockDelay int64 `json:",omitempty"`
	Acquired  int64 `json:",omitempty"`
	Expires   int64 `json:",omitempty"` // of the lease, or of the request

	DeleteOnRelease bool `json:",omitempty"`
}

// Micros is a time as the book has it.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time is a time of the book; that of 0 is zero.
func Time(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// tick returns the time that counts: for the record it never goes back, also if the clock was
// set back. The fence is no time here: that of a record which was deleted while the clock was
// ahead would keep the leases of others from ending.
func (r *Resource) tick(now int64) int64 { return max(now, r.UpdatedAt) }

// reap removes what has expired. A lease that expires may shut the lock for a while.
func (r *Resource) reap(now int64) {
	r.Entries = slices.DeleteFunc(r.Entries, func(e Entry) bool {
		if e.Expires > now {
			return false
		}
		if e.Held && e.LockDelay > 0 {
			r.Shut = max(r.Shut, e.Expires+e.LockDelay)
		}
		return true
	})
}

// Busy returns how many permits are held.
func (r *Resource) Busy() int {
	n := 0
	for i := range r.Entries {
		if r.Entries[i].Held {
			n += r.Entries[i].Permits
		}
	}
	return n
}

// fits says whether the entry may be granted now: the lock is not shut, and there is
// room for it beside all that is held and, unless it may barge, beside all that waits
// before it. Who waits earlier has its place kept, so a request for many permits is
// not starved by small ones.
func (r *Resource) fits(now int64, e *Entry) bool {
	if now < r.Shut {
		return false
	}
	permits := e.Permits
	for i := range r.Entries {
		other := &r.Entries[i]
		if other.ID == e.ID || !other.Held && (e.Barging || other.Ticket > e.Ticket) {
			continue
		}
		if r.Kind == locks.ReadWrite {
			if !e.Shared || !other.Shared {
				return false
			}
			continue
		}
		permits += other.Permits
	}
	return r.Kind == locks.ReadWrite || permits <= r.most(e)
}

// most is how many permits may be held with those of an entry: the size of the record, or
// that which its request has named if it is smaller.
func (r *Resource) most(e *Entry) int {
	if e.Most > 0 {
		return min(e.Most, r.Size)
	}
	return r.Size
}

// Wake returns the processes that have a request which could be granted now, each
// once. A store gives them a hint after every step, so it looks at each entry only once:
// with a thousand that wait, fits for each would be a million looks.
func (r *Resource) Wake(now int64) []string {
	now = r.tick(now)
	if now < r.Shut {
		return nil
	}
	var held, before load // what is held; what waits before the entry that is looked at
	for i := range r.Entries {
		if r.Entries[i].Held {
			held.add(&r.Entries[i])
		}
	}
	var clients []string
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Held {
			continue
		}
		beside := held
		if !e.Barging {
			beside = held.plus(before)
		}
		if e.Expires > now && r.roomBeside(beside, e) && !slices.Contains(clients, e.Client) {
			clients = append(clients, e.Client)
		}
		before.add(e)
	}
	return clients
}

// A load is what several entries take of a lock.
type load struct{ permits, readers, writers int }

func (l *load) add(e *Entry) {
	l.permits += e.Permits
	if e.Shared {
		l.readers++
	} else {
		l.writers++
	}
}

func (l load) plus(m load) load {
	return load{l.permits + m.permits, l.readers + m.readers, l.writers + m.writers}
}

// roomBeside says whether there is room for an entry beside others.
func (r *Resource) roomBeside(others load, e *Entry) bool {
	if r.Kind == locks.ReadWrite {
		return others.writers == 0 && (e.Shared || others.readers == 0)
	}
	return others.permits+e.Permits <= r.most(e)
}

// slot returns the smallest one that is free.
func (r *Resource) slot() int {
	for s := 0; ; s++ {
		if !slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Held && e.Slot == s }) {
			return s
		}
	}
}

// find returns the entry that ref means, -1 if there is none.
func (r *Resource) find(ref locks.Ref) int {
	return slices.IndexFunc(r.Entries, func(e Entry) bool {
		if ref.ID != "" {
			return e.ID == ref.ID
		}
		return ref.Version != "" && e.Held && (e.Version == ref.Version || e.Prev == ref.Version)
	})
}

// next returns when the passing of time alone may change something: 0 for never.
func (r *Resource) next(now int64) int64 {
	var at int64
	if r.Shut > now {
		at = r.Shut
	}
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Held && (at == 0 || e.Expires < at) {
			at = e.Expires
		}
	}
	return at
}

// Grant is the lease of a held entry.
func (e *Entry) Grant() locks.Grant {
	return locks.Grant{
		ID: e.ID, Version: e.Version, Owner: e.Owner, Fence: e.Fence, Slot: e.Slot, Permits: e.Permits, Shared: e.Shared,
		Revoked: e.Revoked, Lease: time.Duration(e.Lease) * time.Microsecond, Acquired: Time(e.Acquired), Expires: Time(e.Expires),
	}
}
