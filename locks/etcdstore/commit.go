package etcdstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// unseen says whether requests that have come since the state was read may do harm: the lock could
// be granted to them, and nobody would tell them; or not to those that are granted it now.
func (t *txn) unseen() bool {
	switch {
	case t.guess:
		return !t.handsOn()
	case !t.recorded && t.r.Exists: // it is a request that comes
		return false
	}
	return t.r.Kind != locks.Mutex || !isHeld(t.r) && len(t.told) == 0
}

// handsOn says whether a mutex is given to the next who waits. That is right whoever has come or
// gone behind that request.
func (t *txn) handsOn() bool {
	return t.recorded && t.r.Kind == locks.Mutex && !isHeld(t.r) && len(t.told) > 0
}

func isHeld(r *book.Resource) bool {
	return slices.ContainsFunc(r.Entries, func(e book.Entry) bool { return e.Held })
}

// conditions are that the lock is as it was: that nobody has written the record, and that the
// keys are there which are written again, or all of them if the state is a guess.
func (t *txn) conditions(prefix string) []clientv3.Cmp {
	all := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(prefix+recordKey), "=", t.st.revision)}
	same := func(what string) {
		if k, there := t.st.keys[what]; there {
			all = append(all, clientv3.Compare(clientv3.CreateRevision(prefix+what), "=", k.created))
		}
	}
	if t.unseen() {
		queue := clientv3.Compare(clientv3.CreateRevision(prefix+queueKey), "<", t.st.at+1)
		all = append(all, queue.WithPrefix())
	}
	if t.guess && !t.handsOn() {
		for what := range t.st.keys {
			same(what)
		}
		return all
	}
	for _, w := range t.writes {
		same(w.what)
	}
	same(t.hints)
	return all
}

// commit does the transaction. If the lock has changed meanwhile it returns all of its keys.
func (t *txn) commit(ctx context.Context) (revision int64, now *seen, err error) {
	prefix := t.s.ofName(t.st.r.Name)
	var ops []clientv3.Op
	for _, w := range t.writes {
		switch {
		case w.all:
			ops = append(ops, clientv3.OpDelete(prefix+w.what, clientv3.WithPrefix()))
		case w.gone:
			ops = append(ops, clientv3.OpDelete(prefix+w.what))
		case w.touch:
			ops = append(ops, clientv3.OpPut(prefix+w.what, "", clientv3.WithIgnoreValue(), clientv3.WithIgnoreLease()))
		default:
			ops = append(ops, clientv3.OpPut(prefix+w.what, w.text, clientv3.WithLease(w.lease)))
		}
	}
	as := clientv3.OpGet(prefix, clientv3.WithPrefix())
	newest := t.s.newest.Load()
	answer, err := t.s.kv.Txn(ctx).If(t.conditions(prefix)...).Then(ops...).Else(as).Commit()
	if err != nil {
		return 0, nil, err
	}
	t.s.noticed(newest, answer.Header.Revision)
	if !answer.Succeeded {
		return 0, &seen{answer.Responses[0].GetResponseRange().Kvs, answer.Header.Revision}, nil
	}
	t.keep(answer.Header.Revision)
	if t.hints != "" {
		t.s.board.Hint(t.st.r.Name)
	}
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
		term := time.Duration(k.e.Lease) * time.Microsecond
		if !k.e.Held {
			term, on.changed = locks.WaiterLife, 0 // others may touch it
		}
		grant := k.e.Grant()
		grant.Fence = on.created
		t.s.keeper.keep(prefix+k.what, on, term, grant)
	}
}
