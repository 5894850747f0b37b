package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
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
	grants bool
	writes []write
	kept   []kept
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
	text := encodeEntry(e)
	was, there := t.st.keys[suffix(e)]
	if !e.Held {
		return t.waits(ctx, e, text)
	}
	if there && was.text == text {
		return nil
	}
	if !there {
		t.grants = true
		if e.LockDelay > 0 {
			t.put(delayKey+e.ID, strconv.FormatInt(e.LockDelay, 10), 0)
		}
	}
	lease, err := t.leaseOf(ctx, e, was, there)
	t.put(holdKey+e.ID, text, lease)
	return err
}

// waits writes a request that waits, if it has changed or another process has kept it.
func (t *txn) waits(ctx context.Context, e *book.Entry, text string) error {
	was, there := t.st.keys[queueKey+e.ID]
	mine := slices.Contains(t.named, e.ID)
	if there && was.text == text && !mine {
		return nil
	}
	lease, err := t.s.leases.use(ctx, waiting)
	if err != nil {
		return err
	}
	t.kept = append(t.kept, kept{queueKey + e.ID, e})
	if !there || was.text != text || was.lease != lease {
		t.put(queueKey+e.ID, text, lease)
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

// record writes the record if anything has changed, for all steps meet in its revision.
func (t *txn) record() {
	switch {
	case !t.r.Exists && t.st.revision == 0 && len(t.st.keys) == 0:
		t.writes = nil
	case !t.r.Exists:
		t.writes = []write{{gone: true, all: true}}
	case len(t.writes) > 0 || encodeRecord(t.r, false, nil) != t.st.text:
		if len(t.r.Entries) == 0 && len(t.writes) > mostWrites { // all were ended by force
			t.writes = nil
			for _, kind := range []string{holdKey, queueKey, delayKey, shutKey} {
				t.writes = append(t.writes, write{what: kind, gone: true, all: true})
			}
		}
		t.put(recordKey, encodeRecord(t.r, t.grants, t.r.Wake(t.st.now)), 0)
	}
}

// conditions are that the lock is as it was: that nobody has written the record, and that the
// keys are there which are written again, or all of them if the state is a guess.
func (t *txn) conditions(prefix string, guess bool) []clientv3.Cmp {
	all := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(prefix+recordKey), "=", t.st.revision)}
	same := func(what string) {
		if k, there := t.st.keys[what]; there {
			all = append(all, clientv3.Compare(clientv3.CreateRevision(prefix+what), "=", k.created))
		}
	}
	if guess {
		for what := range t.st.keys {
			same(what)
		}
		return all
	}
	for _, w := range t.writes {
		same(w.what)
	}
	return all
}

// commit does the transaction. If the lock has changed meanwhile it returns all of its keys.
func (t *txn) commit(ctx context.Context, guess bool) (revision int64, now []*mvccpb.KeyValue, err error) {
	prefix := t.s.ofName(t.st.r.Name)
	var ops []clientv3.Op
	for _, w := range t.writes {
		switch {
		case w.all:
			ops = append(ops, clientv3.OpDelete(prefix+w.what, clientv3.WithPrefix()))
		case w.gone:
			ops = append(ops, clientv3.OpDelete(prefix+w.what))
		default:
			ops = append(ops, clientv3.OpPut(prefix+w.what, w.text, clientv3.WithLease(w.lease)))
		}
	}
	as := clientv3.OpGet(prefix, clientv3.WithPrefix())
	answer, err := t.s.kv.Txn(ctx).If(t.conditions(prefix, guess)...).Then(ops...).Else(as).Commit()
	switch {
	case err != nil:
		return 0, nil, err
	case !answer.Succeeded:
		return 0, answer.Responses[0].GetResponseRange().Kvs, nil
	}
	t.keep(answer.Header.Revision)
	return answer.Header.Revision, nil, nil
}

// keep has the keeper end what nobody asks for any more, from now on.
func (t *txn) keep(revision int64) {
	prefix := t.s.ofName(t.st.r.Name)
	for _, w := range t.writes {
		for what := range t.st.keys {
			if w.gone && (what == w.what || w.all && strings.HasPrefix(what, w.what)) {
				t.s.keeper.forget(prefix + what)
			}
		}
	}
	for _, k := range t.kept {
		on := t.st.keys[k.what]
		for _, w := range t.writes {
			if w.what == k.what {
				on = key{created: cmp.Or(on.created, revision), changed: revision, lease: w.lease}
			}
		}
		term := locks.WaiterLife
		if k.e.Held {
			term = time.Duration(k.e.Lease) * time.Microsecond
		}
		grant := k.e.Grant()
		grant.Fence = on.created
		t.s.keeper.keep(prefix+k.what, on, term, grant)
	}
}
