// Package relational is what the stores over SQL databases have in common: two tables,
// how a [book.Resource] is read from their rows and written back, and the steps of a
// locks.Store on top of what each database does in its own way.
//
// A mutex that is held and that nobody waits for is one row of lk_resource, so to take
// and to give back such a mutex is one statement each. Whatever else happens is one
// transaction: lock the row of the resource with a statement of its own, read the
// entries with the next one, take the step of the book, write what has changed. The two
// must be two statements: a single one at READ COMMITTED reads the entries as they
// were before it waited for the row, and grants one too many.
//
// Whoever changes an entry has the row of its resource locked.
package relational

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// A Row is a row of lk_resource. The holder of a mutex is a part of the row.
type Row struct {
	book.Resource
	Holder book.Entry // the ID is empty if there is none
	// Wakes says whose turn it is, see Mark. Stores that have nothing better look at it to
	// find out when to give hints.
	Wakes int64
	// waiters is how many entries there are beside the holder.
	waiters int64
	bucket  int64
}

// resourceColumns are the columns of lk_resource. The first two are its key.
var resourceColumns = []column{
	{"tenant", tenant}, {"key", key},
	{"kind", integer}, {"max_n", integer}, {"lease_us", integer}, {"fair", integer}, {"delete_on_release", integer},
	{"lock_delay_us", integer}, {"shut_until", integer}, {"fence", integer}, {"ticket", integer}, {"version", long}, {"data", optional},
	{"created_by", long}, {"created_us", integer}, {"updated_by", long}, {"updated_us", integer},
	{"waiters", integer}, {"wakes", integer},
	{"holder_id", id}, {"holder_version", long}, {"holder_prev", long}, {"holder_owner", long}, {"holder_ticket", integer},
	{"holder_lease_us", integer}, {"holder_delay_us", integer}, {"holder_acquired", integer}, {"holder_exp", integer},
	{"holder_revoked", integer}, {"holder_delete", integer},
	{"bucket", integer}, {"retention_us", integer}, {"due_us", integer},
}

// since2 are the columns at the end of a table that version 1 of the schema did not have.
var since2 = map[string][]column{"lk_resource": resourceColumns[len(resourceColumns)-3:], "lk_entry": entryColumns[len(entryColumns)-1:]}

func (r *Row) fields() []any {
	h := &r.Holder
	return []any{
		&r.Tenant, &r.Key,
		&r.Kind, &r.Size, &r.Lease, &r.Fair, &r.DeleteOnRelease,
		&r.LockDelay, &r.Shut, &r.Fence, &r.Ticket, &r.Version, &r.Data,
		&r.CreatedBy, &r.CreatedAt, &r.UpdatedBy, &r.UpdatedAt,
		&r.waiters, &r.Wakes,
		&h.ID, &h.Version, &h.Prev, &h.Owner, &h.Ticket,
		&h.Lease, &h.LockDelay, &h.Acquired, &h.Expires,
		&h.Revoked, &h.DeleteOnRelease,
		&r.bucket, &r.Retention, &r.Due,
	}
}

// An Entry is a row of lk_entry: whatever waits, and what is held but the holder of a mutex.
type Entry struct {
	locks.Name
	book.Entry
}

// entryColumns are the columns of lk_entry. The first three are its key.
var entryColumns = []column{
	{"tenant", tenant}, {"key", key}, {"id", id},
	{"version", long}, {"prev_version", long}, {"owner", long}, {"client", long},
	{"held", integer}, {"revoked", integer}, {"shared", integer}, {"barging", integer}, {"qty", integer}, {"slot", integer},
	{"ticket", integer}, {"fence", integer}, {"lease_us", integer}, {"lock_delay_us", integer},
	{"acquired_us", integer}, {"expires_us", integer}, {"delete_on_release", integer},
	{"most", integer},
}

func (e *Entry) fields() []any {
	return []any{
		&e.Tenant, &e.Key, &e.ID,
		&e.Version, &e.Prev, &e.Owner, &e.Client,
		&e.Held, &e.Revoked, &e.Shared, &e.Barging, &e.Permits, &e.Slot,
		&e.Ticket, &e.Fence, &e.Lease, &e.LockDelay,
		&e.Acquired, &e.Expires, &e.DeleteOnRelease,
		&e.Most,
	}
}

// Scan reads the columns of a resource, by the Scan of whatever rows the database has.
func (r *Row) Scan(scan func(dest ...any) error) error {
	if err := scan(dests(r.fields())...); err != nil {
		return err
	}
	r.Exists = r.Kind != 0 // 0: made only to be locked
	return nil
}

// Scan reads the columns of an entry.
func (e *Entry) Scan(scan func(dest ...any) error) error { return scan(dests(e.fields())...) }

// Args returns the values of the columns of an entry.
func (e *Entry) Args() []any { return args(e.fields()) }

// Resource puts a row and its entries together. The entries have the order of their
// tickets.
func (r *Row) resource(entries []book.Entry) *book.Resource {
	res := r.Resource
	res.Entries = entries
	if r.Holder.ID != "" {
		h := r.Holder
		h.Held, h.Permits, h.Fence = true, 1, r.Fence // of a mutex, the last fence is the holder's
		at, _ := slices.BinarySearchFunc(entries, h.Ticket, func(e book.Entry, ticket int64) int { return cmp.Compare(e.Ticket, ticket) })
		res.Entries = slices.Insert(entries, at, h)
	}
	return &res
}

// row takes a resource apart.
func row(res *book.Resource, wakes int64) (*Row, []book.Entry) {
	r := &Row{Resource: *res, Wakes: wakes, bucket: book.Bucket(res.Name)}
	entries := res.Entries
	if at := slices.IndexFunc(entries, func(e book.Entry) bool { return e.Held }); at >= 0 && r.Kind == locks.Mutex {
		r.Holder = entries[at]
		entries = slices.Delete(slices.Clone(entries), at, at+1)
	}
	r.Entries, r.waiters = nil, int64(len(entries))
	return r, entries
}

// Names and owners are bytes, not text, to the database: they may hold any byte, and
// are compared as bytes.

// Bytes returns the value of a column.
func Bytes(s string) []byte { return append([]byte{}, s...) }

// OptionalBytes returns the value of a column that may be NULL.
func OptionalBytes(s *string) any {
	if s == nil {
		return nil
	}
	return Bytes(*s)
}

func args(fields []any) []any {
	values := make([]any, len(fields))
	for i, f := range fields {
		switch f := f.(type) {
		case *string:
			values[i] = Bytes(*f)
		case **string:
			values[i] = OptionalBytes(*f)
		case *int64:
			values[i] = *f
		case *int:
			values[i] = int64(*f)
		case *locks.Kind:
			values[i] = int64(*f)
		case *bool:
			values[i] = int64(0)
			if *f {
				values[i] = int64(1)
			}
		}
	}
	return values
}

func dests(fields []any) []any {
	for i, f := range fields {
		if _, is := f.(*int64); !is {
			fields[i] = dest{f}
		}
	}
	return fields
}

// String returns where a column of bytes is scanned to.
func String(s *string) sql.Scanner { return dest{s} }

// dest is a field that a column is scanned to.
type dest struct{ field any }

func (d dest) Scan(value any) error {
	b, isText := value.([]byte)
	if s, is := value.(string); is {
		b, isText = []byte(s), true
	}
	n, isNumber := value.(int64)
	fits := isNumber
	switch f := d.field.(type) {
	case **string:
		if *f, fits = nil, isText || value == nil; isText {
			s := string(b)
			*f = &s
		}
	case *string:
		*f, fits = string(b), isText
	case *int:
		*f = int(n)
	case *locks.Kind:
		*f = locks.Kind(n)
	case *bool:
		*f = n != 0
	}
	if fits {
		return nil
	}
	return fmt.Errorf("locks: a column has a %T where %T was written", value, d.field)
}
