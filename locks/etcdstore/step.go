package etcdstore

import (
	"context"
	"errors"
	"slices"
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
// f may be called several times, so it sets what it returns anew each time. It returns the state
// before the step and after it.
func (s *Store) step(
	ctx context.Context, name locks.Name, named []string, f func(now int64, r *book.Resource),
) (before, after *state, err error) {
	give, err := s.turns.Take(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer give()
	st := s.guesses.take(name, s.now())
	for try, guess := 0, st != nil; ; try++ {
		if st == nil {
			if st, err = s.read(ctx, name); err != nil {
				return nil, nil, err
			}
		}
		r := copyOf(st.r)
		f(st.now, r)
		next, now, err := s.change(ctx, st, r, named, guess)
		switch {
		case noLease(err): // of this process: it was stopped for long
			s.leases.drop()
			st = nil
		case errors.Is(err, errTooMany):
			return nil, nil, err
		case err != nil:
			return nil, nil, classed(ctx, err)
		case next == nil && now == nil && guess:
			st = nil
		case next == nil && now == nil:
			return st, st, nil
		case next != nil:
			s.guesses.put(next)
			return st, next, nil
		default:
			if st, err = load(name, s.ofName(name), *now, s.now()); err != nil {
				return nil, nil, err
			}
		}
		if guess = false; try > 1 {
			pause.Before(ctx, try, time.Millisecond)
			st = nil // it may have changed again
		}
	}
}

func copyOf(r *book.Resource) *book.Resource {
	c := *r
	c.Entries = slices.Clone(r.Entries)
	return &c
}

// change writes what a step has made of a lock. It returns the state then; or all keys of the lock
// if somebody else has written it; or neither if there is nothing to write, or to guess. A transaction grants
// one lease, whose token is its revision: more than one are as many transactions.
func (s *Store) change(
	ctx context.Context, st *state, r *book.Resource, named []string, guess bool,
) (*state, *seen, error) {
	var next *state
	for {
		stage, more := oneGrant(st, r)
		t := &txn{s: s, st: st, r: stage, named: named, guess: guess}
		if err := t.plan(ctx); err != nil {
			return nil, nil, err
		}
		if guess && st.waited() && !t.handsOn() {
			return nil, nil, nil
		}
		if len(t.writes) == 0 {
			if !guess {
				t.keep(0)
			}
			return next, nil, nil
		}
		revision, now, err := t.commit(ctx)
		if err != nil || revision == 0 {
			return nil, now, err
		}
		next = st.after(t, revision)
		if !more {
			return next, nil, nil
		}
		st, guess = next, false
		for i := range r.Entries {
			e := &r.Entries[i]
			if k, there := st.keys[holdKey+e.ID]; there && e.Held && e.Fence > revision {
				e.Fence = k.created
			}
			if k, there := st.keys[queued(e)]; there {
				e.Ticket = k.entry.Ticket
			}
		}
	}
}

// oneGrant returns a lock with only the first of the leases that are granted in it. more says
// that there are others, which wait for the moment.
func oneGrant(st *state, r *book.Resource) (stage *book.Resource, more bool) {
	stage = copyOf(r)
	first := -1
	for i := range stage.Entries {
		e := &stage.Entries[i]
		if _, there := st.keys[holdKey+e.ID]; !e.Held || there {
			continue
		}
		if first >= 0 && stage.Entries[first].Fence < e.Fence {
			wait(e, st.now)
			more = true
			continue
		}
		if first >= 0 {
			wait(&stage.Entries[first], st.now)
			more = true
		}
		first = i
	}
	return stage, more
}

// wait makes a request of a lease that is not granted yet.
func wait(e *book.Entry, now int64) {
	e.Held, e.Slot, e.Fence, e.Acquired, e.Expires = false, 0, 0, 0, now+locks.WaiterLife.Microseconds()
}

// read gets a lock as it is now.
func (s *Store) read(ctx context.Context, name locks.Name) (*state, error) {
	prefix, now, newest := s.ofName(name), s.now(), s.newest.Load()
	answer, err := s.kv.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, classed(ctx, err)
	}
	s.noticed(newest, answer.Header.Revision)
	return load(name, prefix, seen{answer.Kvs, answer.Header.Revision}, now)
}

// guesses are the locks as this process has left them. Of those that others wait for it guesses only
// who is the next.
type guesses struct {
	mu sync.Mutex
	by map[locks.Name]*state
}

const (
	mostGuesses = 4096
	mostKeys    = 16 // of a semaphore or read-write lock that is guessed
)

// take returns the guess for a lock, nil if there is none, and forgets it.
func (g *guesses) take(name locks.Name, now int64) *state {
	g.mu.Lock()
	st := g.by[name]
	delete(g.by, name)
	g.mu.Unlock()
	if st == nil {
		return nil
	}
	return st.again(now)
}

func (g *guesses) put(st *state) {
	if st.r.Kind != locks.Mutex && len(st.keys) > mostKeys {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[locks.Name]*state{}
	}
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
	g.by = nil
}
