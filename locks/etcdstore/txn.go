package etcdstore

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks/internal/book"
)

// mostWrites is how many changes a transaction has: etcd takes 128 operations.
const mostWrites = 100

// errTooMany is of a step that changes more than a transaction can.
var errTooMany = errors.New("etcdstore: one step would change too much")

// A txn is what one transaction does to a lock.
type txn struct {
	s      *Store
	st     *state
	prefix string          // of the keys of the lock
	now    int64           // the time of the step
	r      *book.Resource  // as it is to be
	named  map[string]bool // IDs of requests that this process keeps waiting
	guess  bool            // st may be out of date
	grants bool
	ops    []clientv3.Op
	keys   map[string]key // as they will be; a revision of 0 is that of the transaction
	kept   []string       // those on a lease of this process that are to end when nobody asks for them any more

	recorded bool     // the record is written
	told     []string // as it is then
	hints    string   // the suffix of a request of this process that may be granted then
}

func (t *txn) put(what, text string, lease clientv3.LeaseID) {
	t.ops = append(t.ops, clientv3.OpPut(t.prefix+what, text, clientv3.WithLease(lease)))
	t.keys[what] = key{created: t.keys[what].created, lease: lease, text: text}
}

// touch writes a key as it is: the process that watches it is told.
func (t *txn) touch(what string) {
	t.ops = append(t.ops, clientv3.OpPut(t.prefix+what, "", clientv3.WithIgnoreValue(), clientv3.WithIgnoreLease()))
	k := t.keys[what]
	k.changed = 0
	t.keys[what] = k
}

func (t *txn) remove(what string) {
	t.ops = append(t.ops, clientv3.OpDelete(t.prefix+what))
	delete(t.keys, what)
}

// removeAll removes, instead of all else that was to be done, the keys that begin so.
func (t *txn) removeAll(begin ...string) {
	t.ops = nil
	for _, kind := range begin {
		t.ops = append(t.ops, clientv3.OpDelete(t.prefix+kind, clientv3.WithPrefix()))
		maps.DeleteFunc(t.keys, func(what string, _ key) bool { return strings.HasPrefix(what, kind) })
	}
}

// plan finds out what has to be written, and sees that the leases of etcd last that it needs.
func (t *txn) plan(ctx context.Context) error {
	there := map[string]bool{}
	for i := range t.r.Entries {
		e := &t.r.Entries[i]
		there[suffix(e)] = true
		if err := t.entry(ctx, e); err != nil {
			return err
		}
	}
	for what, k := range t.st.keys {
		if t.stays(what, there) {
			continue
		}
		t.remove(what)
		if t.st.lapsed(what) && t.r.Shut > 0 {
			if err := t.shut(ctx, what[1:], k.text); err != nil {
				return err
			}
		}
	}
	if t.r.Data != nil && (t.st.r.Data == nil || *t.r.Data != *t.st.r.Data) {
		t.put(dataKey, *t.r.Data, 0)
	}
	t.record()
	if len(t.ops) > mostWrites {
		return errTooMany
	}
	return nil
}

// entry writes an entry if it has changed, or if it goes on to wait and another process has kept it.
func (t *txn) entry(ctx context.Context, e *book.Entry) error {
	was, there := t.st.keys[suffix(e)]
	same := there && was.same(e, t.now)
	if same && (e.Held || !t.named[e.ID]) {
		return nil
	}
	if e.Held && !there {
		t.grants = true
		if e.LockDelay > 0 {
			t.put(delayKey+e.ID, strconv.FormatInt(e.LockDelay, 10), 0)
		}
	}
	lease, err := t.leaseOf(ctx, e, was)
	if err == nil && !(same && was.lease == lease) {
		t.put(suffix(e), encodeEntry(*e, t.st.r.Ticket), lease)
	}
	return err
}

// leaseOf returns the lease of etcd for an entry whose key was so.
func (t *txn) leaseOf(ctx context.Context, e *book.Entry, was key) (clientv3.LeaseID, error) {
	n := waiting
	if e.Held {
		n = seconds(e.Lease)
	}
	if e.Revoked {
		return t.s.leases.grant(ctx, n) // of its own: that of the class is renewed
	}
	lease, err := t.s.leases.use(ctx, n)
	if err == nil && e.Held && was.lease != 0 && was.lease != lease {
		left, err := t.s.leases.left(ctx, was.lease)
		if err != nil || left >= n { // it never gets shorter
			return was.lease, err
		}
	}
	t.kept = append(t.kept, suffix(e))
	return lease, err
}

// stays says whether a key goes on to be there, if it is not written anew.
func (t *txn) stays(what string, there map[string]bool) bool {
	switch what[:1] {
	case holdKey, queueKey:
		return there[what]
	case delayKey:
		return there[holdKey+what[1:]]
	case shutKey:
		return t.r.Shut > 0 // else it was opened by force
	}
	return true
}

// shut has the lock be shut from now on, after a lease that has ended.
func (t *txn) shut(ctx context.Context, id, delay string) error {
	micros, _ := strconv.ParseInt(delay, 10, 64)
	lease, err := t.s.leases.grant(ctx, seconds(micros))
	t.put(shutKey+id, delay, lease)
	return err
}

// record writes the record if anything has changed, for all steps meet in its revision but those
// by which requests come: as many as like may do that at a time.
func (t *txn) record() {
	same := reflect.DeepEqual(plain(t.r), plain(t.st.r))
	more := func(op clientv3.Op) bool {
		return op.IsDelete() || !strings.HasPrefix(string(op.KeyBytes()), t.prefix+queueKey)
	}
	switch {
	case !t.r.Exists && len(t.st.keys) == 0:
		t.ops = nil
	case !t.r.Exists:
		t.removeAll("")
	case !same || slices.ContainsFunc(t.ops, more):
		if len(t.r.Entries) == 0 && len(t.ops) > mostWrites { // all were ended by force
			t.removeAll(holdKey, queueKey, delayKey, shutKey)
		}
		t.tell()
		t.put(recordKey, encodeRecord(t.r, t.grants, t.told), 0)
		t.recorded = true
	}
}

// mostTold is how many processes know at a time that a request of theirs may be granted. Each step
// of one of them tells another.
const mostTold = 8

// tell touches a request of each process that has one which may be granted, unless it was told.
func (t *txn) tell() {
	t.told = t.r.Wake(t.now)
	t.told = t.told[:min(len(t.told), mostTold)]
	for _, client := range t.told {
		if slices.Contains(t.st.told, client) {
			continue
		}
		i := slices.IndexFunc(t.r.Entries, func(e book.Entry) bool { return !e.Held && e.Client == client })
		if what := suffix(&t.r.Entries[i]); client == t.s.id {
			t.hints = what
		} else {
			t.touch(what)
		}
	}
}
