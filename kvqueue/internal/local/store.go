// Package local is what the stores of one process share: revisions, guards, sessions and
// watches, over an ordered tree that keeps the keys.
package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"

	"github.com/ambit-go/ambit/kvqueue"
)

// A Tree keeps keys in order. A View sees what every Update before has done.
type Tree interface {
	View(f func(t Reader) error) error
	// Update keeps all that f has written, or nothing if it or f returns an error.
	Update(f func(t Writer) error) error
}

// A Reader reads from a tree. What it returns is valid until the View or Update ends.
type Reader interface {
	Get(key []byte) []byte // nil: there is none
	// Ascend calls f for the keys from begin to before end, in order, until it returns
	// false.
	Ascend(begin, end []byte, f func(key, value []byte) bool)
}

// A Writer writes, too.
type Writer interface {
	Reader
	Put(key, value []byte) error
	Delete(key []byte) error
}

// Keys of a tree begin with a letter: those of the store's users with u, and the revision
// has a key of its own.
const userKeys = 'u'

var revKey = []byte("m/revision")

// A value in the tree is the revision that wrote it, the session that it vanishes with, and
// what the user wrote.
const header = 16

// A Store is a [kvqueue.KV] over a tree. It is made by [New].
type Store struct {
	tree    Tree
	limits  kvqueue.Limits
	waiting waiting

	mu       sync.Mutex // one change at a time, told in the order of the revisions
	rev      kvqueue.Rev
	closed   bool
	sessions map[int64]*session
	attached map[string]*session // with which a key vanishes
	lastID   int64
	watches  map[*watch]struct{}
	history  []kvqueue.Event // the last changes
	known    kvqueue.Rev     // history has all changes after this revision
}

// keepHistory is how many changes are kept for watches that begin in the past.
const keepHistory = 8192

// New returns a store over a tree. What is in it from before and had a session is deleted:
// the process that had it is gone.
func New(tree Tree, limits kvqueue.Limits) (*Store, error) {
	s := &Store{tree: tree, limits: limits, sessions: map[int64]*session{}, attached: map[string]*session{}, watches: map[*watch]struct{}{}}
	err := tree.Update(func(t Writer) error {
		if b := t.Get(revKey); len(b) == 8 {
			s.rev = kvqueue.Rev(binary.BigEndian.Uint64(b))
		}
		var gone [][]byte
		t.Ascend([]byte{userKeys}, []byte{userKeys + 1}, func(key, value []byte) bool {
			if binary.BigEndian.Uint64(value[8:]) != 0 {
				gone = append(gone, bytes.Clone(key))
			}
			return true
		})
		for _, key := range gone {
			if err := t.Delete(key); err != nil {
				return err
			}
		}
		s.rev++
		return t.Put(revKey, binary.BigEndian.AppendUint64(nil, uint64(s.rev)))
	})
	s.known = s.rev
	s.lastID = int64(s.rev) << 24 // above all IDs from before: a session begins with a transaction of its own
	return s, err
}

// Limits returns what a transaction may hold.
func (s *Store) Limits() kvqueue.Limits { return s.limits }

// Read reads ranges at one revision.
func (s *Store) Read(ctx context.Context, ranges ...kvqueue.Range) (results []kvqueue.Result, rev kvqueue.Rev, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	err = s.tree.View(func(t Reader) error {
		b := t.Get(revKey)
		rev = kvqueue.Rev(binary.BigEndian.Uint64(b))
		for _, r := range ranges {
			results = append(results, readRange(t, r))
		}
		return nil
	})
	return results, rev, err
}

func treeKey(key []byte) []byte { return append([]byte{userKeys}, key...) }

func readRange(t Reader, r kvqueue.Range) (result kvqueue.Result) {
	add := func(key, value []byte) {
		p := kvqueue.Pair{Key: bytes.Clone(key), Rev: kvqueue.Rev(binary.BigEndian.Uint64(value))}
		if !r.KeysOnly {
			p.Value = bytes.Clone(value[header:])
		}
		result.Pairs = append(result.Pairs, p)
	}
	if r.End == nil {
		if value := t.Get(treeKey(r.Begin)); value != nil {
			add(r.Begin, value)
		}
		return result
	}
	t.Ascend(treeKey(r.Begin), treeKey(r.End), func(key, value []byte) bool {
		if r.Limit > 0 && len(result.Pairs) == r.Limit {
			result.More = true
			return false
		}
		add(key[1:], value)
		return true
	})
	return result
}

// Commit does all writes if every guard holds. Those that come while another is being
// written are written together, in the order in which they came.
func (s *Store) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := s.fits(guards, writes); err != nil {
		return 0, err
	}
	c := &change{guards: guards, writes: writes}
	s.waiting.add(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.over { // it is still in waiting: whoever takes it from there ends it before mu is free again
		s.commitLocked(s.waiting.take())
	}
	return c.rev, c.err
}

var errClosed = fmt.Errorf("%w: the store", kvqueue.ErrClosed)

// write does one write, and returns the change; it has no key if nothing has changed.
func write(t Writer, w kvqueue.Write, rev kvqueue.Rev) (e kvqueue.Event, err error) {
	key := treeKey(w.Key)
	if w.Delete {
		if t.Get(key) == nil {
			return e, nil
		}
		return kvqueue.Event{Pair: kvqueue.Pair{Key: bytes.Clone(w.Key), Rev: rev}, Deleted: true}, t.Delete(key)
	}
	id := int64(0)
	if w.Session != nil {
		id = w.Session.ID()
	}
	value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(rev)), uint64(id))
	value = append(value, w.Value...)
	return kvqueue.Event{Pair: kvqueue.Pair{Key: bytes.Clone(w.Key), Value: value[header:], Rev: rev}}, t.Put(key, value)
}

func holds(t Reader, g kvqueue.Guard) bool {
	if g.End != nil {
		empty := true
		t.Ascend(treeKey(g.Key), treeKey(g.End), func([]byte, []byte) bool { empty = false; return false })
		return empty
	}
	value := t.Get(treeKey(g.Key))
	switch g.Is {
	case kvqueue.Absent:
		return value == nil
	case kvqueue.Present:
		return value != nil
	case kvqueue.Unchanged:
		return value != nil && kvqueue.Rev(binary.BigEndian.Uint64(value)) == g.Rev
	default:
		return value != nil && bytes.Compare(value[header:], g.Value) < 0
	}
}

// maxKey is the most bytes of a key: a tree may take no more than twice as many.
const maxKey = 16 << 10

// fits refuses what is too large, as a real store does.
func (s *Store) fits(guards []kvqueue.Guard, writes []kvqueue.Write) error {
	bytes := 0
	for _, w := range writes {
		if len(w.Key) > maxKey {
			return &kvqueue.InvalidError{What: "key", Why: fmt.Sprintf("it has %d bytes, and %d is the most", len(w.Key), maxKey)}
		}
		bytes += len(w.Key) + len(w.Value)
	}
	switch l := s.limits; {
	case len(guards) > l.Guards, len(writes) > l.Writes, bytes > l.Bytes:
		return &kvqueue.InvalidError{What: "transaction", Why: fmt.Sprintf("%d guards, %d writes and %d bytes are more than %+v", len(guards), len(writes), bytes, l)}
	}
	written := make(map[string]bool, len(writes))
	for _, w := range writes {
		if written[string(w.Key)] {
			return &kvqueue.InvalidError{What: "transaction", Why: fmt.Sprintf("the key %q is written twice", w.Key)}
		}
		written[string(w.Key)] = true
	}
	for _, g := range guards {
		if g.End != nil && g.Is != kvqueue.Absent {
			return &kvqueue.InvalidError{What: "guard", Why: "of a range it can only be demanded that it is empty"}
		}
	}
	return nil
}

// Close ends all watches and sessions. The tree is the caller's.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, x := range s.sessions {
		x.timer.Stop()
	}
	for w := range s.watches {
		w.endLocked(errClosed)
	}
}

// Watch yields changes.
func (s *Store) Watch(ctx context.Context, from kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		w := s.watch(from, prefixes)
		defer s.unwatch(w)
		for {
			events, err := w.next(ctx)
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(kvqueue.Event{}, err)
				}
				return
			}
		}
	}
}
