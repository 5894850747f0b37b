package etcdstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// The keys of a lock begin with the prefix of the store, the length of the tenant, a colon, the
// tenant, a slash, the key and an end. Zero bytes of the key are written as two, so the records
// of a tenant are in the order of their keys. Then comes one of these letters:
const (
	recordKey = "r"
	dataKey   = "a" // the data of the lock; there is no such key if it has none
	holdKey   = "h" // and an ID: a lease of the lock, on a lease of etcd
	queueKey  = "q" // and a process, a slash and an ID: a request that waits, on a lease of etcd
	delayKey  = "d" // and an ID: how long the lock is shut if the hold goes and this stays
	shutKey   = "s" // and an ID: the lock is shut as long as this is there
)

const (
	keyEnd   = "\x00\x01"
	zeroByte = "\x00\xff"
)

func (s *Store) ofTenant(tenant string) string {
	return s.prefix + strconv.Itoa(len(tenant)) + ":" + tenant + "/"
}

func (s *Store) ofName(name locks.Name) string {
	return s.ofTenant(name.Tenant) + strings.ReplaceAll(name.Key, "\x00", zeroByte) + keyEnd
}

// cutKey splits what follows the tenant in a key of etcd.
func cutKey(rest string) (key, suffix string, ok bool) {
	escaped, suffix, ok := strings.Cut(rest, keyEnd)
	return strings.ReplaceAll(escaped, zeroByte, "\x00"), suffix, ok && suffix != ""
}

// format is that of the records. One of a newer format is refused.
const format = 1

// A record is a lock without its requests, as etcd has it.
type record struct {
	Format          int        `json:"f"`
	Kind            locks.Kind `json:"k"`
	Size            int        `json:"n"`
	Lease           int64      `json:"l"`
	Fair            bool       `json:"fair,omitempty"`
	DeleteOnRelease bool       `json:"x,omitempty"`
	LockDelay       int64      `json:"d,omitempty"`
	Version         string     `json:"v"`
	Fence           int64      `json:"fence,omitempty"`
	Grants          bool       `json:"g,omitempty"` // the revision of this record is the last fence
	CreatedBy       string     `json:"cb"`
	CreatedAt       int64      `json:"ca"`
	UpdatedBy       string     `json:"ub"`
	UpdatedAt       int64      `json:"ua"`
	Retention       int64      `json:"r,omitempty"`
	Due             int64      `json:"due,omitempty"`
	// Told are processes that were told that a request of theirs may be granted, and that have it.
	Told []string `json:"w,omitempty"`
}

func encodeRecord(r *book.Resource, grants bool, told []string) string {
	out := record{
		Format: format, Kind: r.Kind, Size: r.Size, Lease: r.Lease, Fair: r.Fair, DeleteOnRelease: r.DeleteOnRelease,
		LockDelay: r.LockDelay, Version: r.Version, Fence: r.Fence, Grants: grants,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, UpdatedBy: r.UpdatedBy, UpdatedAt: r.UpdatedAt,
		Retention: r.Retention, Due: r.Due, Told: told,
	}
	if grants {
		out.Fence = 0
	}
	return encode(out)
}

// encode is for types that can always be encoded.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// decodeRecord reads a record that was written at a revision.
func decodeRecord(name locks.Name, value []byte, revision int64) (r *book.Resource, told []string, err error) {
	var in record
	if err := json.Unmarshal(value, &in); err != nil {
		return nil, nil, fmt.Errorf("locks: the record of lock %q is damaged: %w", name.Key, err)
	}
	if in.Format > format {
		return nil, nil, invalid(fmt.Sprintf("etcd has records of format %d, newer than this program knows (%d)", in.Format, format))
	}
	if in.Grants {
		in.Fence = revision
	}
	return &book.Resource{
		Name: name, Exists: true, Kind: in.Kind, Size: in.Size, Lease: in.Lease, Fair: in.Fair,
		DeleteOnRelease: in.DeleteOnRelease, LockDelay: in.LockDelay, Version: in.Version, Fence: in.Fence,
		CreatedBy: in.CreatedBy, CreatedAt: in.CreatedAt, UpdatedBy: in.UpdatedBy, UpdatedAt: in.UpdatedAt, Retention: in.Retention, Due: in.Due,
	}, in.Told, nil
}

// The ticket of a request that waits is the revision which has made its key, and in the last bits
// its number among those of one transaction. So requests come into the queue without a write that
// others wait for.
const ticketBits = 7

// firstTicket is less than those of all requests that come at a revision or later.
func firstTicket(revision int64) int64 { return revision << ticketBits }

// An entry is a request that waits, or a lease of a lock, as etcd has it. Its ID is in the key,
// as the process of a request is, and the fence is the revision that has made the key.
type entry struct {
	Version         string `json:"v"`
	Prev            string `json:"p,omitempty"`
	Owner           string `json:"o,omitempty"`
	Revoked         bool   `json:"rev,omitempty"`
	Shared          bool   `json:"s,omitempty"`
	Barging         bool   `json:"b,omitempty"`
	Permits         int    `json:"n,omitempty"`
	Most            int    `json:"m,omitempty"`
	Slot            int    `json:"slot,omitempty"`
	Ticket          int64  `json:"t"` // of a request: its number in its transaction, if that is all
	Lease           int64  `json:"l"`
	LockDelay       int64  `json:"d,omitempty"`
	Acquired        int64  `json:"a,omitempty"`
	Expires         int64  `json:"e,omitempty"` // as it was written: renewals move the lease alone
	DeleteOnRelease bool   `json:"x,omitempty"`
}

// encodeEntry writes an entry. Tickets that are greater than last are of requests that are new.
func encodeEntry(e *book.Entry, last int64) string {
	out := entry{
		Version: e.Version, Prev: e.Prev, Owner: e.Owner, Revoked: e.Revoked, Shared: e.Shared,
		Barging: e.Barging, Permits: e.Permits, Most: e.Most, Slot: e.Slot, Ticket: e.Ticket, Lease: e.Lease, LockDelay: e.LockDelay,
		Acquired: e.Acquired, DeleteOnRelease: e.DeleteOnRelease,
	}
	switch {
	case e.Held:
		out.Expires = e.Expires
	case e.Ticket > last:
		out.Ticket = e.Ticket - last
	}
	return encode(out)
}

// decodeEntry reads the entry with what follows the kind in its key, which was made at a revision.
func decodeEntry(name locks.Name, kind, id string, value []byte, created int64) (book.Entry, error) {
	client := ""
	if kind == queueKey {
		client, id, _ = strings.Cut(id, "/")
	}
	var in entry
	if err := json.Unmarshal(value, &in); err != nil {
		return book.Entry{}, fmt.Errorf("locks: a request for lock %q is damaged: %w", name.Key, err)
	}
	if in.Ticket < 1<<ticketBits {
		in.Ticket += firstTicket(created)
	}
	return book.Entry{
		ID: id, Held: kind == holdKey, Version: in.Version, Prev: in.Prev, Owner: in.Owner, Client: client, Revoked: in.Revoked,
		Shared: in.Shared, Barging: in.Barging, Permits: in.Permits, Most: in.Most, Slot: in.Slot, Ticket: in.Ticket, Lease: in.Lease,
		LockDelay: in.LockDelay, Acquired: in.Acquired, Expires: in.Expires, DeleteOnRelease: in.DeleteOnRelease,
	}, nil
}

// suffix is that of the key of an entry.
func suffix(e *book.Entry) string {
	if e.Held {
		return holdKey + e.ID
	}
	return queued(e)
}

// queued is the suffix of the key of a request that waits.
func queued(e *book.Entry) string { return ofProcess(e.Client) + e.ID }

// ofProcess begins the suffixes of all requests of a process that wait.
func ofProcess(client string) string { return queueKey + client + "/" }

func rangeEnd(prefix string) string { return clientv3.GetPrefixRangeEnd(prefix) }
