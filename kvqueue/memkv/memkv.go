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
	faults func(guards []kvqueue.Guard, writes []kvqueue.Write) Fault
	late   sync.WaitGroup
}

// An Option changes how a store is made.
type Option func(*Store)

// A Fault is what goes wrong with a transaction.
type Fault uint8

const (
	// None: nothing does.
	None Fault = iota
	// Conflict: it is refused, as if a guard did not hold.
	Conflict
	// Dropped: it is not done, and its caller is told that this is not known.
	Dropped
	// Unanswered: it is done, and its caller is told that this is not known.
	Unanswered
	// Late: its caller is told that it is not known, and then it is done.
	Late
)

// Faults has f say what goes wrong with each transaction.
func Faults(f func(guards []kvqueue.Guard, writes []kvqueue.Write) Fault) Option {
	return func(s *Store) { s.faults = f }
}

// New returns an empty store.
func New(options ...Option) *Store {
	tree := &tree{btree.NewG(32, func(a, b entry) bool { return bytes.Compare(a.key, b.key) < 0 }), sync.RWMutex{}}
	inner, err := local.New(tree, kvqueue.Limits{Guards: 128, Writes: 128, Bytes: 3 << 19, MinTTL: 500 * time.Millisecond})
	if err != nil {
		panic(err) // a tree in memory never fails
	}
	s := &Store{Store: inner}
	for _, o := range options {
		o(s)
	}
	return s
}

// lateBy is how much later than its answer a transaction is done that is [Late].
const lateBy = 20 * time.Millisecond

// Commit does all of the writes if every guard holds, unless a fault was asked for.
func (s *Store) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	fault := None
	if s.faults != nil {
		fault = s.faults(guards, writes)
	}
	switch fault {
	case Conflict:
		return 0, kvqueue.ErrConflict
	case Dropped:
		return 0, kvqueue.ErrUnknown
	case Unanswered:
		_, _ = s.Store.Commit(ctx, guards, writes)
		return 0, kvqueue.ErrUnknown
	case Late:
		s.late.Add(1)
		time.AfterFunc(lateBy, func() {
			defer s.late.Done()
			_, _ = s.Store.Commit(context.WithoutCancel(ctx), guards, writes)
		})
		return 0, kvqueue.ErrUnknown
	default:
		return s.Store.Commit(ctx, guards, writes)
	}
}

// Close waits for what is late, and ends all sessions and watches.
func (s *Store) Close() {
	s.late.Wait()
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
