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

// keyOf returns the key of the lock, of what follows the tenant in a key of etcd.
func keyOf(rest string) string {
	escaped, _, _ := strings.Cut(rest, keyEnd)
	return strings.ReplaceAll(escaped, zeroByte, "\x00")
}

// format is that of the records. Others are refused.
const format = 2

// A record is a lock as etcd has it: without its data and its requests, which have keys of their own.
type record struct {
	Format int
	*book.Resource
	Grants bool `json:",omitempty"` // the revision of this record is the last fence
	// Told are processes that were told that a request of theirs may be granted, and that have it.
	Told []string `json:",omitempty"`
}

// plain is what a record has of a lock.
func plain(r *book.Resource) *book.Resource {
	c := *r
	c.Data, c.Entries, c.Ticket, c.Shut = nil, nil, 0, 0
	return &c
}

func encodeRecord(r *book.Resource, grants bool, told []string) string {
	c := plain(r)
	if grants {
		c.Fence = 0
	}
	return encode(record{format, c, grants, told})
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
func decodeRecord(name locks.Name, text string, revision int64) (r *book.Resource, told []string, err error) {
	in := record{Resource: &book.Resource{}}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, nil, fmt.Errorf("locks: the record of lock %q is damaged: %w", name.Key, err)
	}
	if in.Format != format {
		return nil, nil, invalid(fmt.Sprintf("etcd has records of format %d, and this program knows %d: use the version of it that has written them, or another prefix",
			in.Format, format))
	}
	if in.Name = name; in.Grants {
		in.Fence = revision
	}
	return in.Resource, in.Told, nil
}

// The ticket of a request that waits is the revision which has made its key, and in the last bits
// its number among those of one transaction. So requests come into the queue without a write that
// others wait for.
const ticketBits = 7

// firstTicket is less than those of all requests that come at a revision or later.
func firstTicket(revision int64) int64 { return revision << ticketBits }

// encodeEntry writes an entry. Its ID is in the key, as the process of a request is, and the fence is
// the revision that has made the key. Tickets that are greater than last are of requests that are
// new: only their number in their transaction is written. So is when a lease ends, once: renewals
// move the lease of etcd alone.
func encodeEntry(e book.Entry, last int64) string {
	if !e.Held {
		e.Expires = 0
		if e.Ticket > last {
			e.Ticket -= last
		}
	}
	e.ID, e.Client, e.Held, e.Fence = "", "", false, 0
	return encode(e)
}

// decodeEntry reads the entry with what follows the kind in its key, which was made at a revision.
func decodeEntry(name locks.Name, kind, id, text string, created int64) (e book.Entry, err error) {
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return e, fmt.Errorf("locks: a request for lock %q is damaged: %w", name.Key, err)
	}
	if e.ID, e.Held = id, kind == holdKey; e.Held {
		e.Fence = created
	} else {
		e.Client, e.ID, _ = strings.Cut(id, "/")
	}
	if e.Ticket < 1<<ticketBits {
		e.Ticket += firstTicket(created)
	}
	return e, nil
}

// suffix is that of the key of an entry.
func suffix(e *book.Entry) string {
	if e.Held {
		return holdKey + e.ID
	}
	return ofProcess(e.Client) + e.ID
}

// ofProcess begins the suffixes of all requests of a process that wait.
func ofProcess(client string) string { return queueKey + client + "/" }

func rangeEnd(prefix string) string { return clientv3.GetPrefixRangeEnd(prefix) }
