package memkv

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/google/btree"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/fits"
)

// An entry is a key.
type entry struct {
	key, value []byte
	rev        kvqueue.Rev
	session    *session // with which the key vanishes; nil: it stays
}

// An inner is a store without faults.
type inner struct {
	mu       sync.Mutex // one change at a time, told in the order of the revisions
	keys     *btree.BTreeG[*entry]
	rev      kvqueue.Rev
	closed   bool
	sessions map[*session]struct{}
	lastID   int64
	watches  map[*watch]struct{}
	history  []kvqueue.Event // the last changes
	known    kvqueue.Rev     // history has all changes after this revision
}

// keepHistory is how many changes are kept for watches that begin in the past.
const keepHistory = 8192

func newInner() *inner {
	return &inner{
		keys:     btree.NewG(32, func(a, b *entry) bool { return bytes.Compare(a.key, b.key) < 0 }),
		rev:      1,
		known:    1,
		sessions: map[*session]struct{}{},
		watches:  map[*watch]struct{}{},
	}
}

// Limits returns what a transaction may hold.
func (s *inner) Limits() kvqueue.Limits { return fits.Limits }

// Read reads ranges at one revision.
func (s *inner) Read(ctx context.Context, ranges ...kvqueue.Range) (results []kvqueue.Result, rev kvqueue.Rev, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range ranges {
		results = append(results, s.readLocked(r))
	}
	return results, s.rev, nil
}

func (s *inner) readLocked(r kvqueue.Range) (result kvqueue.Result) {
	s.ascendLocked(r.Begin, r.End, func(e *entry) bool {
		if r.Limit > 0 && len(result.Pairs) == r.Limit {
			result.More = true
			return false
		}
		p := kvqueue.Pair{Key: bytes.Clone(e.key), Rev: e.rev}
		if !r.KeysOnly {
			p.Value = bytes.Clone(e.value)
		}
		result.Pairs = append(result.Pairs, p)
		return true
	})
	return result
}

// ascendLocked calls f for the keys from begin to before end, in order, until it returns false; a
// nil end is the key begin alone.
func (s *inner) ascendLocked(begin, end []byte, f func(e *entry) bool) {
	if end != nil {
		s.keys.AscendRange(&entry{key: begin}, &entry{key: end}, f)
	} else if e, there := s.keys.Get(&entry{key: begin}); there {
		f(e)
	}
}

// Commit does all writes if every guard holds.
func (s *inner) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := fits.Check(guards, writes); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusesLocked(guards, writes); err != nil {
		return s.rev, err
	}
	s.writeLocked(writes)
	return s.rev, nil
}

var errClosed = fmt.Errorf("%w: the store", kvqueue.ErrClosed)

// refusesLocked returns why a transaction is not to be done.
func (s *inner) refusesLocked(guards []kvqueue.Guard, writes []kvqueue.Write) error {
	if s.closed {
		return errClosed
	}
	for _, w := range writes {
		if w.Session == nil {
			continue
		}
		if own, ok := w.Session.(*session); !ok || own.store != s || own.ended {
			return fmt.Errorf("%w: a key is put with a session that has ended", kvqueue.ErrConflict)
		}
	}
	for _, g := range guards {
		if !s.holdsLocked(g) {
			return kvqueue.ErrConflict
		}
	}
	return nil
}

func (s *inner) holdsLocked(g kvqueue.Guard) bool {
	var first *entry
	s.ascendLocked(g.Key, g.End, func(e *entry) bool { first = e; return false })
	switch g.Is {
	case kvqueue.Absent:
		return first == nil
	case kvqueue.Present:
		return first != nil
	case kvqueue.Unchanged:
		return first != nil && first.rev == g.Rev
	default:
		return first != nil && bytes.Compare(first.value, g.Value) < 0
	}
}

// writeLocked does writes at the next revision, and tells the watches.
func (s *inner) writeLocked(writes []kvqueue.Write) {
	s.rev++
	var events []kvqueue.Event
	for _, w := range writes {
		e := &entry{key: bytes.Clone(w.Key), value: bytes.Clone(w.Value), rev: s.rev}
		old, there := s.keys.Get(e)
		if there && old.session != nil {
			delete(old.session.keys, string(e.key))
		}
		switch {
		case !w.Delete:
			if e.session, _ = w.Session.(*session); e.session != nil {
				e.session.keys[string(e.key)] = struct{}{}
			}
			s.keys.ReplaceOrInsert(e)
		case there:
			s.keys.Delete(e)
			e.value = nil
		default:
			continue
		}
		events = append(events, kvqueue.Event{Pair: kvqueue.Pair{Key: e.key, Value: e.value, Rev: s.rev}, Deleted: w.Delete})
	}
	s.publishLocked(events)
}

// Close ends all watches and sessions.
func (s *inner) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for x := range s.sessions {
		x.timer.Stop()
	}
	for w := range s.watches {
		w.endLocked(errClosed)
	}
}

// Watch yields changes.
func (s *inner) Watch(ctx context.Context, from kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
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
