// Package memkv is a store of package kvqueue in memory, for tests: nothing outlives the
// process. It can be told to answer as a store does whose network or members fail.
package memkv

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/google/btree"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/local"
)

// A Store is a [kvqueue.KV] in memory. It is made by [New].
type Store struct {
	*local.Store
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
	tree := &tree{btree.NewG(32, func(a, b entry) bool { return bytes.Compare(a.key, b.key) < 0 }), sync.RWMutex{}}
	inner, err := local.New(tree, kvqueue.Limits{Guards: 128, Writes: 128, Bytes: 3 << 19, MinTTL: 500 * time.Millisecond})
	if err != nil {
		panic(err) // a tree in memory never fails
	}
	s := &Store{Store: inner, faulty: &Faulty{KV: inner}}
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
	s.Store.Close()
}

type entry struct{ key, value []byte }

// A tree is a [local.Tree] in memory. What was written by an Update that fails is taken
// back.
type tree struct {
	keys *btree.BTreeG[entry]
	mu   sync.RWMutex
}

func (t *tree) View(f func(local.Reader) error) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return f(update{keys: t.keys})
}

func (t *tree) Update(f func(local.Writer) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.keys.Clone()
	if err := f(update{changed}); err != nil {
		return err
	}
	t.keys = changed
	return nil
}

type update struct{ keys *btree.BTreeG[entry] }

func (u update) Get(key []byte) []byte {
	e, _ := u.keys.Get(entry{key: key})
	return e.value
}

func (u update) Ascend(begin, end []byte, f func(key, value []byte) bool) {
	u.keys.AscendRange(entry{key: begin}, entry{key: end}, func(e entry) bool { return f(e.key, e.value) })
}

func (u update) Put(key, value []byte) error {
	u.keys.ReplaceOrInsert(entry{bytes.Clone(key), bytes.Clone(value)})
	return nil
}

func (u update) Delete(key []byte) error {
	u.keys.Delete(entry{key: key})
	return nil
}
