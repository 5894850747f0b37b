// Package memkv is a store of package kvqueue in memory, for tests: nothing outlives the
// process. It can be told to answer as a store does whose network or members fail.
package memkv

import (
	"context"

	"github.com/ambit-go/ambit/kvqueue"
)

// A Store is a [kvqueue.KV] in memory. It is made by [New].
type Store struct {
	*inner
	faulty *Faulty
}

// An Option changes how a store is made.
type Option func(*Store)

// Faults has f say what goes wrong with each transaction, as [NewFaulty] does.
func Faults(f func(guards []kvqueue.Guard, writes []kvqueue.Write) Fault) Option {
	return func(s *Store) { s.faulty.faults = f }
}

// New returns an empty store.
func New(options ...Option) *Store {
	inner := newInner()
	s := &Store{inner: inner, faulty: &Faulty{KV: inner}}
	for _, o := range options {
		o(s)
	}
	return s
}

// Commit does all of the writes if every guard holds, unless a fault was asked for.
func (s *Store) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	return s.faulty.Commit(ctx, guards, writes)
}

// Close waits for what is late, and ends all sessions and watches.
func (s *Store) Close() {
	s.faulty.Wait()
	s.inner.Close()
}
