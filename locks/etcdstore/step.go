package etcdstore

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/pause"
)

// step changes a lock as f says, on the condition that nobody else does meanwhile, and begins
// anew if somebody has. It begins with a guess, that the lock is as this process has left it: then
// the step is one request. The transaction checks that; what changes nothing is asked anew, for
// nothing is believed of a guess. named are the requests that this process keeps waiting.
//
// f may be called several times, so it sets what it returns anew each time. step returns the lock
// as it has left it.
func (s *Store) step(ctx context.Context, name locks.Name, named map[string]bool, f func(now int64, r *book.Resource)) (*state, error) {
	give, err := s.turns.Take(ctx, name)
	if err != nil {
		return nil, err
	}
	defer give()
	st := s.guesses.take(name)
	for try, guess := 0, st != nil; ; guess = false {
		if st == nil {
			if st, err = s.read(ctx, name); err != nil {
				return nil, err
			}
		}
		now, r := st.resource()
		f(now, r)
		more := st.grantOne(now, r)
		t := &txn{s: s, st: st, prefix: s.ofName(name), now: now, r: r, named: named, guess: guess, keys: maps.Clone(st.keys)}
		next, done, err := t.commit(ctx)
		switch {
		case noLease(err): // of this process: it was stopped for long
			s.leases.drop()
		case errors.Is(err, errTooMany):
			return nil, err
		case err != nil:
			return nil, classed(ctx, err)
		case done && !more:
			s.guesses.put(next)
			return next, nil
		case done:
			st = next
			continue
		}
		if st = next; try > 1 {
			pause.Before(ctx, try, time.Millisecond)
			st = nil // it may have changed again
		}
		try++
	}
}

// grantOne leaves a lock with only the first of the leases that a step has granted: the others wait
// for the moment, and more says that there are some. For the token of a grant is the revision of its
// transaction.
func (st *state) grantOne(now int64, r *book.Resource) (more bool) {
	var first *book.Entry
	for i := range r.Entries {
		e := &r.Entries[i]
		if _, there := st.keys[holdKey+e.ID]; !e.Held || there {
			continue
		}
		if first == nil || e.Fence < first.Fence {
			first, e = e, first
		}
		if e != nil {
			e.Held, e.Slot, e.Fence, e.Acquired, e.Expires = false, 0, 0, 0, now+locks.WaiterLife.Microseconds()
			more = true
		}
	}
	return more
}

// read gets a lock as it is now.
func (s *Store) read(ctx context.Context, name locks.Name) (*state, error) {
	prefix, newest := s.ofName(name), s.newest.Load()
	answer, err := s.kv.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, classed(ctx, err)
	}
	s.noticed(newest, answer.Header.Revision)
	return load(name, prefix, answer.Kvs, answer.Header.Revision)
}

// guesses are the locks as this process has left them. Where others wait it guesses only
// who is the next.
type guesses struct {
	mu sync.Mutex
	by map[locks.Name]*state
}

const (
	mostGuesses = 4096
	mostKeys    = 17 // of a semaphore or read-write lock that is guessed
)

// take returns the guess for a lock, nil if there is none, and forgets it.
func (g *guesses) take(name locks.Name) *state {
	g.mu.Lock()
	defer g.mu.Unlock()
	st := g.by[name]
	delete(g.by, name)
	return st
}

func (g *guesses) put(st *state) {
	if st.r.Kind != locks.Mutex && len(st.keys) > mostKeys {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.by) >= mostGuesses {
		for name := range g.by { // any one
			delete(g.by, name)
			break
		}
	}
	g.by[st.r.Name] = st
}

// drop forgets all guesses.
func (g *guesses) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.by)
}
