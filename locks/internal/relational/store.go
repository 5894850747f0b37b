package relational

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// A Backend is what each database does in its own way. Every method repeats what the
// database has refused for the moment (a deadlock, a busy file) until the context is
// done. Functions that it is given may therefore be called several times.
type Backend interface {
	// Step locks a resource, has f take a step, and writes what was changed. create
	// says that f may make the record: then there is a row to lock before f is called.
	Step(ctx context.Context, name locks.Name, create bool, f func(now int64, r *book.Resource)) error
	// Steps is Step for many locks in one transaction. It waits for no row that somebody
	// else has locked: f is called without those.
	Steps(ctx context.Context, names []locks.Name, f func(now int64, rs map[locks.Name]*book.Resource)) error
	// Read reads a resource without locking it.
	Read(ctx context.Context, name locks.Name) (now int64, r *book.Resource, err error)
	// Page reads resources in the order of their keys.
	Page(ctx context.Context, tenant, after string, most int) (now int64, rs []*book.Resource, err error)

	// Due returns locks of a bucket whose records may go by that time, at most so many.
	Due(ctx context.Context, bucket, now int64, most int) ([]locks.Name, error)

	// Take takes a mutex that has a record, is free and is not waited for. It says false if
	// the book has to decide.
	Take(ctx context.Context, name locks.Name, q *locks.Request) (g locks.Grant, ok bool, err error)
	// Give gives such a mutex back.
	Give(ctx context.Context, name locks.Name, id string, data *string) (bool, error)
	// Extend renews the leases of mutexes that are named by their IDs. It returns what
	// was extended, and leaves the others to the book.
	Extend(ctx context.Context, renewals []*locks.Renewal) (map[*locks.Renewal]locks.Grant, error)
}

// A Store is a locks.Store over a Backend, but for its Listen, Traits and Close.
type Store struct {
	Backend
	// Client is this process, for the entries that it makes.
	Client string
	// Hints has the locks that somebody in this process waits for. Those are not free, so
	// what is only good for one that is free is not even tried.
	Hints *Hub

	tidier tidier
}

// wanted says whether somebody in this process waits for the lock, or did a moment ago.
func (s *Store) wanted(name locks.Name) bool { return s.Hints != nil && s.Hints.Listening(name) > 0 }

func validate(name locks.Name) error {
	return cmp.Or(fits("tenant", name.Tenant, tenant), fits("key", name.Key, key))
}

func fits(what, s string, t columnType) error {
	if len(s) > sizes[t] {
		return &locks.ValidationError{What: what, Why: fmt.Sprintf("it has %d bytes, and at most %d are possible", len(s), sizes[t])}
	}
	return nil
}

// plain says whether a request may be granted without the book.
func plain(requests []locks.Request) bool {
	if len(requests) != 1 {
		return false
	}
	q := &requests[0]
	return q.Kind == locks.Mutex && q.Permits <= 1 && !q.Shared && !q.OnlyIfExists && q.ID != ""
}

func (s *Store) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (turn locks.Turn, err error) {
	if err := validate(name); err != nil {
		return turn, err
	}
	create := false
	for i := range requests {
		q := &requests[i]
		if err := cmp.Or(fits("ID", q.ID, id), fits("version", q.Version, long), fits("owner", q.Owner, long)); err != nil {
			return turn, err
		}
		create = create || !q.OnlyIfExists
	}
	if plain(requests) && !s.wanted(name) {
		if g, ok, err := s.Take(ctx, name, &requests[0]); err != nil {
			return turn, err
		} else if ok {
			return locks.Turn{Now: g.Acquired, Next: g.Expires, Size: 1, Answers: []locks.Answer{{Granted: true, Grant: g}}}, nil
		}
	}
	made := false
	err = s.Step(ctx, name, create, func(now int64, r *book.Resource) {
		existed := r.Exists
		turn = r.Acquire(now, s.Client, requests)
		made = r.Exists && !existed
	})
	if made && err == nil {
		s.made(book.Bucket(name), book.Micros(turn.Now))
	}
	return turn, err
}

// page is how many records Purge reads at a time.
const page = 1000

// Purge looks at the records of the tenant until so many have gone.
func (s *Store) Purge(ctx context.Context, tenant string, most int) (purged int, err error) {
	for after := ""; purged < most; {
		now, rs, err := s.Page(ctx, tenant, after, page)
		if err != nil || len(rs) == 0 {
			return purged, err
		}
		for _, r := range rs {
			after = r.Key
			if purged == most {
				break
			}
			if r.Due == 0 || r.Due > now {
				continue
			}
			gone := false
			if err := s.Step(ctx, r.Name, false, func(now int64, r *book.Resource) { gone = r.Purge(now) }); err != nil {
				return purged, err
			}
			if gone {
				purged++
			}
		}
	}
	return purged, nil
}

// TakeArgs are the parameters of Statements.Take but the time.
func TakeArgs(name locks.Name, q *locks.Request) []any {
	var del int64
	if q.DeleteOnRelease {
		del = 1
	}
	return []any{
		Bytes(name.Tenant), Bytes(name.Key), Bytes(q.ID), Bytes(q.Version), Bytes(q.Owner),
		q.Lease.Microseconds(), q.LockDelay.Microseconds(), OptionalBytes(q.Data), del,
	}
}

// Taken is the grant that Take has brought.
func Taken(q *locks.Request, fence, acquired, expires int64) locks.Grant {
	return locks.Grant{
		ID: q.ID, Version: q.Version, Owner: q.Owner, Fence: fence, Permits: 1,
		Lease: q.Lease.Truncate(time.Microsecond), Acquired: book.Time(acquired), Expires: book.Time(expires),
	}
}

// ScanExtended reads ExtendColumns.
func ScanExtended(scan func(dest ...any) error) (g locks.Grant, err error) {
	var lease, acquired, expires int64
	err = scan(String(&g.ID), String(&g.Version), String(&g.Owner), &g.Fence, &lease, &acquired, &expires)
	g.Permits, g.Lease = 1, time.Duration(lease)*time.Microsecond
	g.Acquired, g.Expires = book.Time(acquired), book.Time(expires)
	return g, err
}

func (s *Store) Release(ctx context.Context, name locks.Name, ref locks.Ref, data *string) (released bool, err error) {
	if err := validate(name); err != nil {
		return false, err
	}
	if ref.ID != "" && !s.wanted(name) {
		if released, err = s.Give(ctx, name, ref.ID, data); released || err != nil {
			return released, err
		}
	}
	err = s.Step(ctx, name, false, func(now int64, r *book.Resource) { released = r.Release(now, ref, data) })
	return released, err
}

// Renew extends all mutexes that are named by their IDs in one go. A renewal that is left,
// because it is no mutex or because there is something about it, goes to the book.
func (s *Store) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	results := make([]locks.RenewResult, len(renewals))
	at := make(map[*locks.Renewal]int, len(renewals))
	var quick []*locks.Renewal
	for i := range renewals {
		q := &renewals[i]
		if err := cmp.Or(validate(q.Name), fits("version", q.NewVersion, long)); err != nil {
			return nil, err
		}
		if at[q] = i; q.ID != "" && q.NewVersion == "" && q.Data == nil {
			quick = append(quick, q)
		}
	}
	if len(quick) > 0 {
		grants, err := s.Extend(ctx, quick)
		if err != nil {
			return nil, err
		}
		for q, g := range grants {
			results[at[q]] = locks.RenewResult{Verdict: locks.Extended, Grant: g}
		}
	}
	return results, s.rest(ctx, renewals, results)
}

// rest renews by the book what has no verdict.
func (s *Store) rest(ctx context.Context, renewals []locks.Renewal, results []locks.RenewResult) error {
	left := map[locks.Name][]int{}
	var names []locks.Name
	for i := range renewals {
		if results[i].Verdict != 0 {
			continue
		}
		name := renewals[i].Name
		if left[name] == nil {
			names = append(names, name)
		}
		left[name] = append(left[name], i)
	}
	step := func(now int64, name locks.Name, r *book.Resource) {
		for _, i := range left[name] {
			if results[i] = (locks.RenewResult{Verdict: locks.Skipped}); r != nil {
				results[i] = r.Renew(now, &renewals[i])
			}
		}
	}
	switch {
	case len(names) == 0:
		return nil
	case len(renewals) == 1: // one that is asked for alone waits for its row
		return s.Step(ctx, names[0], false, func(now int64, r *book.Resource) { step(now, names[0], r) })
	}
	return s.Steps(ctx, names, func(now int64, rs map[locks.Name]*book.Resource) {
		for _, name := range names {
			step(now, name, rs[name])
		}
	})
}

func (s *Store) Create(ctx context.Context, record locks.Record) (made locks.Record, err error) {
	if err := cmp.Or(validate(record.Name), fits("version", record.Version, long), fits("owner", record.CreatedBy, long)); err != nil {
		return made, err
	}
	var refused error
	err = s.Step(ctx, record.Name, true, func(now int64, r *book.Resource) {
		if refused = r.Create(now, &record); refused == nil {
			made, refused = r.Record(now)
		}
	})
	return made, cmp.Or(err, refused)
}

func (s *Store) Get(ctx context.Context, name locks.Name) (locks.Record, error) {
	if err := validate(name); err != nil {
		return locks.Record{}, err
	}
	now, r, err := s.Read(ctx, name)
	if err != nil {
		return locks.Record{}, err
	}
	return r.Record(now)
}

func (s *Store) List(ctx context.Context, tenant, after string, most int) ([]locks.Record, error) {
	if most <= 0 {
		return nil, nil
	}
	now, rs, err := s.Page(ctx, tenant, after, most)
	if err != nil {
		return nil, err
	}
	var records []locks.Record
	for _, r := range rs {
		if record, err := r.Record(now); err == nil {
			record.Holders = nil
			records = append(records, record)
		}
	}
	return records, nil
}

func (s *Store) Delete(ctx context.Context, name locks.Name, version string) error {
	if err := validate(name); err != nil {
		return err
	}
	var refused error
	err := s.Step(ctx, name, false, func(now int64, r *book.Resource) { refused = r.Delete(now, version) })
	return cmp.Or(err, refused)
}

func (s *Store) Revoke(ctx context.Context, name locks.Name, ref locks.Ref, force bool) (n int, err error) {
	if err := validate(name); err != nil {
		return 0, err
	}
	err = s.Step(ctx, name, false, func(now int64, r *book.Resource) { n = r.Revoke(now, ref, force) })
	return n, err
}
