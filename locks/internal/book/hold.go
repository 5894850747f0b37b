package book

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// Release is Store.Release.
func (r *Resource) Release(now int64, ref locks.Ref, data *string) bool {
	now = r.tick(now)
	r.reap(now)
	i := r.find(ref)
	if i < 0 {
		return false
	}
	e := r.Entries[i]
	r.Entries = slices.Delete(r.Entries, i, i+1)
	if e.Held {
		r.UpdatedBy, r.UpdatedAt = e.Owner, now
		if data != nil {
			r.Data = data
		}
	}
	deletes := r.DeleteOnRelease || e.DeleteOnRelease && (e.Held || r.Retention > 0) // who only waited deletes nothing that is to be kept
	if len(r.Entries) == 0 && now >= r.Shut && deletes {                             // the record knows how long it is shut
		r.Exists = false
	}
	return true
}

// Renew is Store.Renew for one lease.
func (r *Resource) Renew(now int64, q *locks.Renewal) locks.RenewResult {
	now = r.tick(now)
	r.reap(now)
	i := r.find(q.Ref)
	if i < 0 || !r.Entries[i].Held {
		return locks.RenewResult{Verdict: locks.NotYours}
	}
	e := &r.Entries[i]
	if e.Revoked {
		return locks.RenewResult{Verdict: locks.Revoked}
	}
	e.Lease = micros(q.Lease)
	e.Expires = max(e.Expires, now+e.Lease+r.Slack)
	if q.NewVersion != "" && q.NewVersion != e.Version {
		e.Prev, e.Version = e.Version, q.NewVersion
	}
	if q.Data != nil {
		r.Data = q.Data
	}
	r.UpdatedBy, r.UpdatedAt = e.Owner, now
	return locks.RenewResult{Verdict: locks.Extended, Grant: e.Grant()}
}

// Revoke is Store.Revoke.
func (r *Resource) Revoke(now int64, ref locks.Ref, force bool) int {
	r.reap(r.tick(now))
	if force {
		return r.end(ref)
	}
	n := 0
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Held && !e.Revoked && (ref == locks.Ref{} || r.find(ref) == i) {
			e.Revoked = true
			n++
		}
	}
	return n
}

// end takes leases from their holders, whose fences stay behind those of the next. All of them
// are taken where the clock may have been put back: who waits may be dead as well then, and who
// lives asks again.
func (r *Resource) end(ref locks.Ref) int {
	if (ref == locks.Ref{}) {
		n := 0
		for i := range r.Entries {
			if r.Entries[i].Held {
				n++
			}
		}
		r.Entries, r.Shut = nil, 0
		return n
	}
	i := r.find(ref)
	if i < 0 || !r.Entries[i].Held {
		return 0
	}
	r.Entries = slices.Delete(r.Entries, i, i+1)
	return 1
}

// Create is Store.Create. version is the record's if it is new.
func (r *Resource) Create(now int64, q *locks.Record) error {
	now = r.tick(now)
	r.reap(now)
	if r.Exists && r.Kind != q.Kind {
		return locks.Conflict("it is a %s, not a %s", r.Kind, q.Kind)
	}
	if r.Exists && r.Kind != locks.Semaphore && r.Busy() > 0 {
		return locks.Conflict("it is held")
	}
	if !r.Exists {
		r.Exists, r.Kind, r.Version, r.CreatedBy, r.CreatedAt = true, q.Kind, q.Version, q.CreatedBy, now
	}
	r.Size = 1
	if r.Kind == locks.Semaphore {
		r.Size = q.Size
	}
	r.Lease, r.Fair, r.DeleteOnRelease, r.LockDelay = micros(q.Lease), q.Fair, q.DeleteOnRelease, micros(q.LockDelay)
	r.UpdatedBy, r.UpdatedAt = q.CreatedBy, now
	r.keep()
	if q.Data != nil {
		r.Data = q.Data
	}
	return nil
}

// Delete is Store.Delete.
func (r *Resource) Delete(now int64, version string) error {
	now = r.tick(now)
	r.reap(now)
	switch {
	case !r.Exists:
		return locks.ErrNotFound
	case r.Busy() > 0:
		return locks.Conflict("it is held")
	case len(r.Entries) > 0:
		return locks.Conflict("it is waited for")
	case now < r.Shut: // the record knows how long
		return locks.Conflict("it is shut, after a lease that has expired")
	case version != "" && version != r.Version:
		return locks.Conflict("it has another version")
	}
	r.Exists = false
	return nil
}

// keep has the record stay until it is deleted.
func (r *Resource) keep() { r.Retention, r.Due = 0, 0 }

// Purge deletes the record if nobody has used it for as long as it is kept, and says so.
// Else it says when to look again.
func (r *Resource) Purge(now int64) bool {
	now = r.tick(now)
	r.reap(now)
	switch {
	case !r.Exists || r.Due == 0 || now < r.Due:
	case r.Data != nil:
		r.keep()
	case len(r.Entries) > 0 || now < r.Shut:
		r.Due = max(now, r.Shut) + r.Retention
	case now < r.UpdatedAt+r.Retention:
		r.Due = r.UpdatedAt + r.Retention
	default:
		r.Exists = false
		return true
	}
	return false
}

// Record is Store.Get.
func (r *Resource) Record(now int64) (locks.Record, error) {
	r.reap(r.tick(now))
	if !r.Exists {
		return locks.Record{}, locks.ErrNotFound
	}
	rec := locks.Record{
		Name: r.Name, Kind: r.Kind, Size: r.Size, Lease: time.Duration(r.Lease) * time.Microsecond, Fair: r.Fair, Data: r.Data,
		DeleteOnRelease: r.DeleteOnRelease, LockDelay: time.Duration(r.LockDelay) * time.Microsecond, Version: r.Version,
		Fence: r.Fence, Busy: r.Busy(), CreatedBy: r.CreatedBy, CreatedAt: Time(r.CreatedAt), UpdatedBy: r.UpdatedBy, UpdatedAt: Time(r.UpdatedAt),
	}
	for i := range r.Entries {
		if !r.Entries[i].Held {
			rec.Waiters++
			continue
		}
		g := r.Entries[i].Grant()
		g.ID = ""
		rec.Holders = append(rec.Holders, g)
	}
	slices.SortFunc(rec.Holders, func(a, b locks.Grant) int { return cmp.Compare(a.Fence, b.Fence) })
	if r.Kind == locks.Mutex && len(rec.Holders) == 1 {
		rec.Version = rec.Holders[0].Version
	}
	return rec, nil
}
