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

	mu     sync.Mutex
	closed bool
	terms  map[string]*term
}

// A term is how long a key stays if nobody asks for it again.
type term struct {
	length time.Duration
	on     key
	until  time.Duration
	grant  locks.Grant // of a hold
	timer  *time.Timer
}

// keep has a key end when a length of time is over, and not before the time that it had.
func (k *keeper) keep(what string, on key, length time.Duration, grant locks.Grant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	until := k.s.clock.Now() + length
	if t := k.terms[what]; t != nil {
		until = max(until, t.until)
		t.timer.Stop()
	}
	if k.terms == nil {
		k.terms = map[string]*term{}
	}
	k.keepLocked(what, &term{length: length, on: on, until: until, grant: grant})
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
	if t == nil || t.length != length {
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
	same := clientv3.Compare(clientv3.ModRevision(what), "=", t.on.changed)
	if t.on.changed == 0 {
		same = clientv3.Compare(clientv3.LeaseValue(what), "=", t.on.lease)
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
		if len(kvs) == 0 || clientv3.LeaseID(kvs[0].Lease) != t.on.lease {
			return
		}
		next.on.changed, next.until = kvs[0].ModRevision, k.s.clock.Now()+t.length
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terms[what] == nil && !k.closed {
		k.keepLocked(what, &next)
	}
}

// close leaves all keys to their leases.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, t := range k.terms {
		t.timer.Stop()
	}
	k.terms = nil
}
