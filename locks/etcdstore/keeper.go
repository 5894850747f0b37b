package etcdstore

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
)

// A keeper ends the keys of this process that nobody asks for any more: they are on leases of
// etcd that go on for others. Without it, as when the process dies, they end with those.
type keeper struct {
	s *Store

	mu    sync.Mutex
	terms map[string]*term
}

// A term is how long a key stays if nobody asks for it again.
type term struct {
	key
	until time.Duration
	timer *time.Timer
}

// length is how long the key stays from when it was asked for.
func (t *term) length() time.Duration {
	if t.entry.Held {
		return time.Duration(t.entry.Lease) * time.Microsecond
	}
	return locks.WaiterLife
}

// keep has a key end when its length of time is over, and not before the time that it had.
func (k *keeper) keep(what string, on key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.s.ctx.Err() != nil { // close has been called, or is
		return
	}
	next := &term{key: on}
	next.until = k.s.clock.Now() + next.length()
	if t := k.terms[what]; t != nil {
		next.until = max(next.until, t.until)
		t.timer.Stop()
	}
	k.keepLocked(what, next)
}

func (k *keeper) keepLocked(what string, t *term) {
	t.timer = time.AfterFunc(t.until-k.s.clock.Now(), func() { k.s.goes(func() { k.over(what, t) }) })
	k.terms[what] = t
}

// longer has a hold end later, as [keeper.keep] does, and returns its term. It is nil if the
// length is another, or the key is none of this keeper.
func (k *keeper) longer(what string, length time.Duration) *term {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.terms[what]
	if t == nil || t.length() != length {
		return nil
	}
	t.until = max(t.until, k.s.clock.Now()+length)
	return t
}

// forget is called when a key is gone.
func (k *keeper) forget(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.terms[what]; t != nil {
		t.timer.Stop()
		delete(k.terms, what)
	}
}

// again is how long the keeper waits when etcd does not answer.
const again = time.Second

// over ends a key whose time is over, unless it is longer by now.
func (k *keeper) over(what string, t *term) {
	k.mu.Lock()
	if k.terms[what] != t {
		k.mu.Unlock()
		return
	}
	if t.until > k.s.clock.Now() {
		k.keepLocked(what, t)
		k.mu.Unlock()
		return
	}
	delete(k.terms, what)
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(k.s.ctx, 5*again)
	defer cancel()
	same := clientv3.Compare(clientv3.ModRevision(what), "=", t.changed)
	if !t.entry.Held { // others may touch it
		same = clientv3.Compare(clientv3.LeaseValue(what), "=", t.lease)
	}
	answer, err := k.s.kv.Txn(ctx).If(same).
		Then(clientv3.OpDelete(what)).Else(clientv3.OpGet(what, clientv3.WithKeysOnly())).Commit()
	next := *t
	switch {
	case err != nil:
		next.until = k.s.clock.Now() + again
	case answer.Succeeded:
		return
	default: // another process has written it: it ends when that lets it
		kvs := answer.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 0 || clientv3.LeaseID(kvs[0].Lease) != t.lease {
			return
		}
		next.changed, next.until = kvs[0].ModRevision, k.s.clock.Now()+t.length()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terms[what] == nil && k.s.ctx.Err() == nil {
		k.keepLocked(what, &next)
	}
}

// close leaves all keys to their leases. The context of the store is done.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.terms {
		t.timer.Stop()
	}
	clear(k.terms)
}
