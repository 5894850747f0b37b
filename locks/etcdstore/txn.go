package etcdstore

import (
	"context"
	"errors"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks/internal/book"
)

// mostWrites is how many changes a transaction has: etcd takes 128 operations.
const mostWrites = 100

// errTooMany is of a step that changes more than a transaction can.
var errTooMany = errors.New("etcdstore: one step would change too much")

// A write changes one key, or deletes all that begin so.
type write struct {
	what  string // what follows the name of the lock
	text  string
	touch bool // it stays as it is: the process that watches it is told
	gone  bool
	all   bool // of those that are deleted
	lease clientv3.LeaseID
}

// A kept is a key on a lease of this process that is to end when nobody asks for it any more.
type kept struct {
	what string
	e    *book.Entry
}

// A txn is what one transaction does to a lock.
type txn struct {
	s      *Store
	st     *state
	r      *book.Resource // as it is to be
	named  []string       // IDs of requests that this process keeps waiting
	guess  bool           // st may be out of date
	grants bool
	writes []write
	kept   []kept

	recorded bool     // the record is written
	told     []string // as it is then
	hints    string   // the suffix of a request of this process that may be granted then
}

func (t *txn) put(what, text string, lease clientv3.LeaseID) {
	t.writes = append(t.writes, write{what: what, text: text, lease: lease})
}

func (t *txn) remove(what string) { t.writes = append(t.writes, write{what: what, gone: true}) }

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
	for what := range t.st.keys {
		if kind := what[:1]; (kind == holdKey || kind == queueKey) && !there[what] {
			t.remove(what)
			if _, delays := t.st.keys[delayKey+what[1:]]; delays && kind == holdKey {
				t.remove(delayKey + what[1:])
			}
		}
	}
	if err := t.shut(ctx); err != nil {
		return err
	}
	if t.r.Data != nil && (t.st.r.Data == nil || *t.r.Data != *t.st.r.Data) {
		t.put(dataKey, *t.r.Data, 0)
	}
	t.record()
	if len(t.writes) > mostWrites {
		return errTooMany
	}
	return nil
}

// entry writes an entry if it has changed.
func (t *txn) entry(ctx context.Context, e *book.Entry) error {
	was, there := t.st.keys[suffix(e)]
	if !e.Held {
		return t.waits(ctx, e)
	}
	if there && was.same(e) {
		return nil
	}
	if !there {
		t.grants = true
		if e.LockDelay > 0 {
			t.put(delayKey+e.ID, strconv.FormatInt(e.LockDelay, 10), 0)
		}
	}
	lease, err := t.leaseOf(ctx, e, was, there)
	t.put(holdKey+e.ID, encodeEntry(*e, t.st.r.Ticket), lease)
	return err
}

// waits writes a request that waits, if it has changed or another process has kept it.
func (t *txn) waits(ctx context.Context, e *book.Entry) error {
	was, there := t.st.keys[queued(e)]
	same := there && was.same(e)
	if same && !slices.Contains(t.named, e.ID) {
		return nil
	}
	lease, err := t.s.leases.use(ctx, waiting)
	if err != nil {
		return err
	}
	t.kept = append(t.kept, kept{queued(e), e})
	if !same || was.lease != lease {
		t.put(queued(e), encodeEntry(*e, t.st.r.Ticket), lease)
	}
	return nil
}

// leaseOf returns the lease of etcd for a hold that was granted, renewed or revoked.
func (t *txn) leaseOf(ctx context.Context, e *book.Entry, was key, there bool) (clientv3.LeaseID, error) {
	n := seconds(e.Lease)
	if e.Revoked {
		return t.s.leases.grant(ctx, n) // of its own: that of the class is renewed
	}
	lease, err := t.s.leases.use(ctx, n)
	if err == nil && there && was.lease != lease {
		left, err := t.s.leases.left(ctx, was.lease)
		if err != nil || left >= n { // it never gets shorter
			return was.lease, err
		}
	}
	t.kept = append(t.kept, kept{holdKey + e.ID, e})
	return lease, err
}

// shut begins the time for which the lock is shut after leases that have ended, or ends it if
// that was forced.
func (t *txn) shut(ctx context.Context) error {
	if t.st.r.Shut == 0 {
		return nil
	}
	forced := t.r.Shut == 0
	for _, id := range t.st.lapsed {
		delay := t.st.keys[delayKey+id].text
		t.remove(delayKey + id)
		if forced {
			continue
		}
		micros, _ := strconv.ParseInt(delay, 10, 64)
		lease, err := t.s.leases.grant(ctx, seconds(micros))
		if err != nil {
			return err
		}
		t.put(shutKey+id, delay, lease)
	}
	for what := range t.st.keys {
		if what[:1] == shutKey && forced {
			t.remove(what)
		}
	}
	return nil
}

// record writes the record if anything has changed, for all steps meet in its revision but those
// by which requests come: as many as like may do that at a time.
func (t *txn) record() {
	same := encodeRecord(t.r, false, nil) == t.st.text
	switch {
	case !t.r.Exists && t.st.revision == 0 && len(t.st.keys) == 0:
		t.writes = nil
	case !t.r.Exists:
		t.writes = []write{{gone: true, all: true}}
	case !same || slices.ContainsFunc(t.writes, func(w write) bool { return w.gone || w.what[:1] != queueKey }):
		if len(t.r.Entries) == 0 && len(t.writes) > mostWrites { // all were ended by force
			t.writes = nil
			for _, kind := range []string{holdKey, queueKey, delayKey, shutKey} {
				t.writes = append(t.writes, write{what: kind, gone: true, all: true})
			}
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
	t.told = t.r.Wake(t.st.now)
	t.told = t.told[:min(len(t.told), mostTold)]
	for _, client := range t.told {
		if slices.Contains(t.st.told, client) {
			continue
		}
		i := slices.IndexFunc(t.r.Entries, func(e book.Entry) bool { return !e.Held && e.Client == client })
		if what := queued(&t.r.Entries[i]); client == t.s.id {
			t.hints = what
		} else {
			t.writes = append(t.writes, write{what: what, touch: true})
		}
	}
}
