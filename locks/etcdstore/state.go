package etcdstore

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// A state is a lock as it was at one revision.
type state struct {
	now      int64 // the time of the steps on it
	at       int64 // the revision up to which all requests are known
	revision int64 // of the record; 0: there is none
	made     int64 // the revision that has made it
	r        *book.Resource
	keys     map[string]key // by what follows the name of the lock; not the record
	text     string         // of the record, as it would be written if nothing changed
	told     []string       // see [record]
	lapsed   []string       // the IDs of leases that have ended, and shut the lock
}

// A key is one of etcd.
type key struct {
	created, changed int64 // revisions
	lease            clientv3.LeaseID
	text             string     // the value
	entry            book.Entry // if it is that of one
}

// same says whether an entry is as it was. How long a request goes on to wait is not written.
func (k key) same(e *book.Entry) bool {
	was := k.entry
	if !e.Held {
		was.Expires = e.Expires
	}
	return was == *e
}

// A seen is what etcd has under a prefix, or a part of that, at a revision.
type seen struct {
	kvs []*mvccpb.KeyValue
	at  int64
}

// load makes the state of a lock from all of its keys.
func load(name locks.Name, prefix string, all seen, now int64) (*state, error) {
	st := &state{now: now, at: all.at, r: &book.Resource{Name: name}, keys: map[string]key{}}
	for _, kv := range all.kvs { // first the record, for its time
		if string(kv.Key[len(prefix):]) == recordKey {
			r, told, err := decodeRecord(name, kv.Value, kv.ModRevision)
			if err != nil {
				return nil, err
			}
			st.r, st.told, st.revision, st.made, st.now = r, told, kv.ModRevision, kv.CreateRevision, max(now, r.UpdatedAt)
		}
	}
	st.r.Ticket = firstTicket(st.at + 1)
	for _, kv := range all.kvs {
		if err := st.add(string(kv.Key[len(prefix):]), kv); err != nil {
			return nil, err
		}
	}
	st.settle()
	return st, nil
}

// add adds a key.
func (st *state) add(what string, kv *mvccpb.KeyValue) error {
	k := key{created: kv.CreateRevision, changed: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease), text: string(kv.Value)}
	switch what[:1] {
	case recordKey:
		return nil
	case dataKey:
		st.r.Data = &k.text
	case holdKey, queueKey:
		e, err := decodeEntry(st.r.Name, what[:1], what[1:], kv.Value, k.created)
		if err != nil {
			return err
		}
		st.lasts(&e, k.created)
		k.entry = e
		st.r.Entries = append(st.r.Entries, e)
	}
	st.keys[what] = k
	return nil
}

// lasts says of an entry whose key is there that it has not ended, whatever the time is.
func (st *state) lasts(e *book.Entry, created int64) {
	switch {
	case !e.Held:
		e.Expires = st.now + locks.WaiterLife.Microseconds()
	case e.Expires <= st.now: // it was renewed
		e.Expires = st.now + e.Lease
	}
	if e.Held {
		e.Fence = created
		st.r.Fence = max(st.r.Fence, created)
	}
}

// settle is called when all keys are known.
func (st *state) settle() {
	slices.SortFunc(st.r.Entries, func(a, b book.Entry) int { return cmp.Compare(a.Ticket, b.Ticket) })
	for what, k := range st.keys {
		id := what[1:]
		_, held := st.keys[holdKey+id]
		if what[:1] == shutKey || what[:1] == delayKey && !held {
			delay, _ := strconv.ParseInt(k.text, 10, 64)
			st.r.Shut = max(st.r.Shut, st.now+max(delay, 1))
		}
		if what[:1] == delayKey && !held {
			st.lapsed = append(st.lapsed, id)
		}
	}
	st.text = encodeRecord(st.r, false, nil)
}

// again is the state as it is a little later, if nobody has changed it.
func (st *state) again(now int64) *state {
	next := *st
	next.now = max(now, st.now)
	r := *st.r
	r.Entries = slices.Clone(r.Entries)
	next.keys = maps.Clone(st.keys)
	for i := range r.Entries {
		e := &r.Entries[i]
		k := next.keys[suffix(e)]
		next.r = &r
		next.lasts(e, k.created)
		k.entry = *e
		next.keys[suffix(e)] = k
	}
	next.r = &r
	return &next
}

// after returns the state with the changes of a transaction.
func (st *state) after(t *txn, revision int64) *state {
	next := &state{now: st.now, at: st.at, r: t.r, keys: t.keysAfter(revision), made: cmp.Or(st.made, revision)}
	if !t.r.Exists {
		r := &book.Resource{Name: st.r.Name, Ticket: firstTicket(revision + 1)}
		return &state{now: st.now, at: revision, r: r, keys: map[string]key{}}
	}
	if t.unseen() {
		next.at = revision
	}
	if next.revision, next.told = st.revision, st.told; t.recorded {
		next.revision, next.told = revision, t.told
	}
	r := *t.r
	r.Entries, r.Shut, r.Ticket = slices.Clone(r.Entries), 0, firstTicket(revision+1)
	next.r = &r
	for i := range r.Entries {
		e := &r.Entries[i]
		k := next.keys[suffix(e)]
		if !e.Held && e.Ticket > st.r.Ticket {
			e.Ticket += firstTicket(revision) - st.r.Ticket
		}
		next.lasts(e, k.created)
		k.entry = *e
		next.keys[suffix(e)] = k
	}
	if t.grants {
		r.Fence = revision
	}
	next.settle()
	return next
}

// keysAfter returns the keys of a lock after a transaction.
func (t *txn) keysAfter(revision int64) map[string]key {
	keys := maps.Clone(t.st.keys)
	for _, w := range t.writes {
		if w.gone {
			maps.DeleteFunc(keys, func(what string, _ key) bool {
				return what == w.what || w.all && strings.HasPrefix(what, w.what)
			})
			continue
		}
		k := key{created: revision, changed: revision, lease: w.lease, text: w.text}
		if was, there := t.st.keys[w.what]; there {
			k.created = was.created
			if w.touch {
				k.lease, k.text = was.lease, was.text
			}
		}
		keys[w.what] = k
	}
	delete(keys, recordKey)
	return keys
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
