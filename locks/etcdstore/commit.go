package etcdstore

import (
	"cmp"
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
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
	return t.r.Kind != locks.Mutex || t.r.Busy() == 0 && len(t.told) == 0
}

// handsOn says whether a mutex is given to the next who waits. It is right whoever has come or
// gone behind that request.
func (t *txn) handsOn() bool {
	return t.recorded && t.r.Kind == locks.Mutex && t.r.Busy() == 0 && len(t.told) > 0
}

// conditions are that the lock is as it was: that nobody has written the record, and that the
// keys are there which are written again, or all of them if the state is a guess.
func (t *txn) conditions() []clientv3.Cmp {
	all := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(t.prefix+recordKey), "=", t.st.keys[recordKey].changed)}
	same := func(what string) {
		if k, there := t.st.keys[what]; there {
			all = append(all, clientv3.Compare(clientv3.CreateRevision(t.prefix+what), "=", k.created))
		}
	}
	if t.unseen() {
		queue := clientv3.Compare(clientv3.CreateRevision(t.prefix+queueKey), "<", t.st.at+1)
		all = append(all, queue.WithPrefix())
	}
	if t.guess && !t.handsOn() {
		for what := range t.st.keys {
			same(what)
		}
		return all
	}
	for i := range t.ops {
		same(string(t.ops[i].KeyBytes()[len(t.prefix):]))
	}
	same(t.hints)
	return all
}

// commit writes what a step has made of a lock. It returns the lock as it is then, or as it is if done
// is false, as somebody else has written it; nil if that is not known, for nothing is believed of a guess.
func (t *txn) commit(ctx context.Context) (next *state, done bool, err error) {
	if err := t.plan(ctx); err != nil {
		return nil, false, err
	}
	switch {
	case t.guess && (len(t.ops) == 0 || t.st.waited() && !t.handsOn()):
		return nil, false, nil
	case len(t.ops) == 0:
		t.keep(t.st)
		return t.st, true, nil
	}
	newest, as := t.s.newest.Load(), clientv3.OpGet(t.prefix, clientv3.WithPrefix())
	answer, err := t.s.kv.Txn(ctx).If(t.conditions()...).Then(t.ops...).Else(as).Commit()
	if err != nil {
		return nil, false, err
	}
	revision := answer.Header.Revision
	t.s.noticed(newest, revision)
	if !answer.Succeeded {
		next, err = load(t.st.r.Name, t.prefix, answer.Responses[0].GetResponseRange().Kvs, revision)
		return next, false, err
	}
	if next, err = t.after(revision); err != nil {
		return nil, false, err
	}
	t.keep(next)
	if t.hints != "" {
		t.s.board.Hint(t.st.r.Name)
	}
	return next, true, nil
}

// after returns the lock as the transaction has left it.
func (t *txn) after(revision int64) (*state, error) {
	for what, k := range t.keys {
		k.created, k.changed = cmp.Or(k.created, revision), cmp.Or(k.changed, revision)
		t.keys[what] = k
	}
	next, err := newState(t.st.r.Name, t.keys, revision)
	if err == nil && !t.unseen() {
		next.at = t.st.at
	}
	return next, err
}

// keep has the keeper end what nobody asks for any more, from now on.
func (t *txn) keep(next *state) {
	for what := range t.st.keys {
		if _, there := next.keys[what]; !there {
			t.s.keeper.forget(t.prefix + what)
		}
	}
	for _, what := range t.kept {
		t.s.keeper.keep(t.prefix+what, next.keys[what])
	}
}
