package sqlitekv

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/fits"
)

// Commit does all writes if every guard holds. Those that come while others are being written
// are written together, in the order in which they came.
func (s *Store) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (rev kvqueue.Rev, err error) {
	if err := fits.Check(guards, writes); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(t *transaction) (refused, err error) {
		rev, refused, err = s.commit(t, guards, writes)
		return refused, err
	})
	return rev, err
}

func (s *Store) commit(t *transaction, guards []kvqueue.Guard, writes []kvqueue.Write) (rev kvqueue.Rev, refused, err error) {
	if refused, err = t.refuses(s, guards, writes); refused != nil || err != nil {
		return t.rev, refused, err
	}
	rev, err = t.do(writes)
	return rev, nil, err
}

// Update reads ranges, and does what decide returns, in one transaction.
func (s *Store) Update(
	ctx context.Context, ranges []kvqueue.Range, decide func(results []kvqueue.Result, rev kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error),
) (rev kvqueue.Rev, err error) {
	err = s.write(ctx, func(t *transaction) (refused, err error) {
		results := make([]kvqueue.Result, len(ranges))
		for i, r := range ranges {
			if results[i], err = t.readRange(r); err != nil {
				return nil, err
			}
		}
		rev = t.rev
		guards, writes, refused := decide(results, rev)
		if refused == nil {
			refused = fits.Check(guards, writes)
		}
		if refused == nil {
			rev, refused, err = s.commit(t, guards, writes)
		}
		return refused, err
	})
	return rev, err
}

// A transaction is what several steps write together. Each has a revision of its own.
type transaction struct {
	*link
	began, rev kvqueue.Rev
}

// transaction begins one, after the sessions have ended whose time is over.
func (s *Store) transaction(l *link) (*transaction, error) {
	rev, late, err := s.revision(l)
	t := &transaction{l, rev, rev}
	if late {
		err = t.endSessions("until <= ?", s.now())
	}
	return t, err
}

// keepLog is how many revisions the log has at least, trimEvery how many more it may have.
const (
	keepLog   = 4096
	trimEvery = 256
)

// end writes down what the last revision is.
func (t *transaction) end() error {
	if t.rev == t.began {
		return nil
	}
	if _, err := t.exec("UPDATE state SET rev = ?", int64(t.rev)); err != nil {
		return err
	}
	if trimmed := t.rev - keepLog; t.rev/trimEvery != t.began/trimEvery && trimmed > 0 {
		if _, err := t.exec("DELETE FROM log WHERE rev <= ?", int64(trimmed)); err != nil {
			return err
		}
		_, err := t.exec("UPDATE state SET trimmed = max(trimmed, ?)", int64(trimmed))
		return err
	}
	return nil
}

// refuses returns why a transaction is not to be done.
func (t *transaction) refuses(s *Store, guards []kvqueue.Guard, writes []kvqueue.Write) (refused, err error) {
	for _, w := range writes {
		if w.Session == nil {
			continue
		}
		own, ok := w.Session.(*session)
		if !ok || own.store.file.path != s.file.path {
			return fmt.Errorf("%w: a key is put with a session of another store", kvqueue.ErrConflict), nil
		}
		if _, lives, err := t.number("SELECT 1 FROM session WHERE id = ?", own.id); err != nil || !lives {
			return fmt.Errorf("%w: a key is put with a session that has ended", kvqueue.ErrConflict), err
		}
	}
	for _, g := range guards {
		if holds, err := t.holds(g); err != nil || !holds {
			return kvqueue.ErrConflict, err
		}
	}
	return nil, nil
}

func (t *transaction) holds(g kvqueue.Guard) (bool, error) {
	switch {
	case g.End != nil:
		_, there, err := t.number("SELECT 1 FROM kv WHERE key >= ? AND key < ? LIMIT 1", g.Key, g.End)
		return !there, err
	case g.Is == kvqueue.Below:
		holds := false
		err := t.query("SELECT value FROM kv WHERE key = ?", []any{g.Key}, func(row []driver.Value) bool {
			holds = bytes.Compare(bytesOf(row[0]), g.Value) < 0
			return false
		})
		return holds, err
	}
	rev, there, err := t.number("SELECT rev FROM kv WHERE key = ?", g.Key)
	switch g.Is {
	case kvqueue.Absent:
		return !there, err
	case kvqueue.Present:
		return there, err
	default:
		return there && kvqueue.Rev(rev) == g.Rev, err
	}
}

// do does writes at the next revision, and notes which keys they have changed.
func (t *transaction) do(writes []kvqueue.Write) (kvqueue.Rev, error) {
	if len(writes) == 0 {
		return t.rev, nil
	}
	t.rev++
	var changes []byte
	for _, w := range writes {
		var changed int64
		var err error
		if w.Delete {
			changed, err = t.exec("DELETE FROM kv WHERE key = ?", w.Key)
		} else {
			id := int64(0)
			if w.Session != nil {
				id = w.Session.ID()
			}
			changed, err = t.exec("INSERT OR REPLACE INTO kv (key, rev, session, value) VALUES (?, ?, ?, ?)", w.Key, int64(t.rev), id, w.Value)
		}
		if err != nil {
			return 0, err
		}
		if changed > 0 {
			changes = appendChange(changes, w.Key, w.Value, w.Delete)
		}
	}
	return t.rev, t.note(changes)
}

// note writes down which keys a revision has changed.
func (t *transaction) note(changes []byte) error {
	_, err := t.exec("INSERT INTO log (rev, changes) VALUES (?, ?)", int64(t.rev), changes)
	return err
}
