package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/ambit-go/ambit/kvqueue"
)

// A change is one transaction of a caller. All but guards and writes is guarded by Store.mu.
type change struct {
	guards []kvqueue.Guard
	writes []kvqueue.Write

	over   bool // rev and err are the answer
	rev    kvqueue.Rev
	err    error
	events []kvqueue.Event
}

// waiting are the changes that nobody has taken to write. Whoever has added one then waits
// for Store.mu, and takes all that there are if its own is not over by then.
type waiting struct {
	mu      sync.Mutex
	changes []*change
}

func (w *waiting) add(c *change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c)
}

func (w *waiting) take() []*change {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.changes
	w.changes = nil
	return taken
}

// errUnchanged has the tree take back a transaction that has written nothing.
var errUnchanged = errors.New("nothing was written")

// commitLocked does changes, one after another, in one transaction of the tree, and ends
// each of them. One whose guards do not hold writes nothing, and the others are not touched by that; an error
// of the tree is that of all.
func (s *Store) commitLocked(changes []*change) {
	rev := s.rev
	err := s.tree.Update(func(t Writer) error {
		for _, c := range changes {
			c.rev, c.err = rev, s.refusesLocked(t, c)
			if c.err != nil {
				continue
			}
			rev++
			if err := c.write(t, rev); err != nil {
				return err
			}
		}
		if rev == s.rev {
			return errUnchanged
		}
		return t.Put(revKey, binary.BigEndian.AppendUint64(nil, uint64(rev)))
	})
	failed := err != nil && err != errUnchanged
	for _, c := range changes {
		c.over = true
		switch {
		case failed:
			c.rev, c.err = s.rev, err
		case c.err == nil:
			for _, w := range c.writes {
				s.attachLocked(w)
			}
			s.publishLocked(c.events)
		}
	}
	if !failed {
		s.rev = rev
	}
}

// refusesLocked returns why a change is not to be done.
func (s *Store) refusesLocked(t Reader, c *change) error {
	if s.closed {
		return errClosed
	}
	for _, w := range c.writes {
		if w.Session == nil {
			continue
		}
		if own, ok := w.Session.(*session); !ok || own.store != s || own.ended {
			return fmt.Errorf("%w: a key is put with a session that has ended", kvqueue.ErrConflict)
		}
	}
	for _, g := range c.guards {
		if !holds(t, g) {
			return kvqueue.ErrConflict
		}
	}
	return nil
}

// write does the writes of a change, and notes what has changed.
func (c *change) write(t Writer, rev kvqueue.Rev) error {
	c.rev = rev
	for _, w := range c.writes {
		e, err := write(t, w, rev)
		if err != nil {
			return err
		}
		if e.Key != nil {
			c.events = append(c.events, e)
		}
	}
	return nil
}
