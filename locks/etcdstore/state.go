package etcdstore

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// A state is a lock as it was at one revision. It is not changed once it is loaded.
type state struct {
	at   int64          // the revision up to which all requests are known
	r    *book.Resource // with the times that are written, which are over for what was renewed
	keys map[string]key // by what follows the name of the lock
	shut int64          // for how long the lock is shut from any time on; 0 if it is not
	told []string       // see [record]
}

// A key is one of etcd.
type key struct {
	created, changed int64 // revisions
	lease            clientv3.LeaseID
	text             string     // the value
	entry            book.Entry // if it is that of one
}

// load makes the state of a lock from what etcd has of it.
func load(name locks.Name, prefix string, kvs []*mvccpb.KeyValue, at int64) (*state, error) {
	keys := make(map[string]key, len(kvs))
	for _, kv := range kvs {
		keys[string(kv.Key[len(prefix):])] = key{
			created: kv.CreateRevision, changed: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease), text: string(kv.Value),
		}
	}
	return newState(name, keys, at)
}

// newState makes the state of a lock from all of its keys.
func newState(name locks.Name, keys map[string]key, at int64) (*state, error) {
	st := &state{at: at, r: &book.Resource{Name: name}, keys: keys}
	if k, there := keys[recordKey]; there {
		var err error
		if st.r, st.told, err = decodeRecord(name, k.text, k.changed); err != nil {
			return nil, err
		}
	}
	st.r.Ticket = firstTicket(at + 1)
	for what, k := range keys {
		if err := st.add(what, k); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(st.r.Entries, func(a, b book.Entry) int { return cmp.Compare(a.Ticket, b.Ticket) })
	return st, nil
}

// add adds what a key says of the lock.
func (st *state) add(what string, k key) error {
	switch kind := what[:1]; {
	case kind == dataKey:
		st.r.Data = &k.text
	case kind == holdKey || kind == queueKey:
		if k.entry.ID == "" {
			var err error
			if k.entry, err = decodeEntry(st.r.Name, kind, what[1:], k.text, k.created); err != nil {
				return err
			}
			st.keys[what] = k
		}
		st.r.Entries = append(st.r.Entries, k.entry)
		st.r.Fence = max(st.r.Fence, k.entry.Fence)
	case kind == shutKey || st.lapsed(what):
		delay, _ := strconv.ParseInt(k.text, 10, 64)
		st.shut = max(st.shut, delay, 1)
	}
	return nil
}

// lapsed says whether a key is the delay of a lease that has ended, which shuts the lock.
func (st *state) lapsed(what string) bool {
	_, held := st.keys[holdKey+what[1:]]
	return what[:1] == delayKey && !held
}

// resource returns the lock for a step on it, which may change it, and the time of the step.
func (st *state) resource() (now int64, r *book.Resource) {
	c := *st.r
	now = max(book.Micros(time.Now()), c.UpdatedAt)
	c.Entries = slices.Clone(c.Entries)
	for i := range c.Entries {
		lasts(&c.Entries[i], now)
	}
	if st.shut > 0 {
		c.Shut = now + st.shut
	}
	return now, &c
}

// lasts says of an entry whose key is there that it has not ended, whatever the time is.
func lasts(e *book.Entry, now int64) {
	switch {
	case !e.Held:
		e.Expires = now + locks.WaiterLife.Microseconds()
	case e.Expires <= now: // it was renewed
		e.Expires = now + e.Lease
	}
}

// same says whether an entry is as it was. How long a request goes on to wait is not written.
func (k key) same(e *book.Entry, now int64) bool {
	was := k.entry
	lasts(&was, now)
	return was == *e
}

// waited says whether a request waits.
func (st *state) waited() bool {
	return slices.ContainsFunc(st.r.Entries, func(e book.Entry) bool { return !e.Held })
}

// place says how many requests wait before the first of a process, and -1 if none of its does.
func (st *state) place(client string) int {
	place := 0
	for i := range st.r.Entries {
		if e := &st.r.Entries[i]; !e.Held {
			if e.Client == client {
				return place
			}
			place++
		}
	}
	return -1
}
