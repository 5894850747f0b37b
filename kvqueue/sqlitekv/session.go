package sqlitekv

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// A session is a row of the file, with the time at which it ends.
type session struct {
	store *Store
	id    int64
	ttl   time.Duration
}

// begin refuses a file that is not one of this package, and ends the sessions of earlier starts of
// the machine.
func (s *Store) begin(ctx context.Context) error {
	if err := s.read(ctx, s.file.check); err != nil {
		return err
	}
	return s.write(ctx, func(t *transaction) (refused, err error) { return nil, t.endSessions("boot <> ?", s.boot) })
}

// Session begins a session.
func (s *Store) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	x := &session{store: s, ttl: ttl}
	err := s.write(ctx, func(t *transaction) (refused, err error) {
		_, err = t.exec("INSERT INTO session (boot, ttl, until) VALUES (?, ?, ?)", s.boot, ttl.Microseconds(), s.now()+ttl.Microseconds())
		if err == nil {
			x.id, _, err = t.number("SELECT last_insert_rowid()")
		}
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// ID tells the session from all others of the file, past ones too.
func (x *session) ID() int64 { return x.id }

// Renew has the TTL begin anew.
func (x *session) Renew(ctx context.Context) error {
	return x.store.write(ctx, func(t *transaction) (refused, err error) {
		changed, err := t.exec("UPDATE session SET until = ? WHERE id = ?", x.store.now()+x.ttl.Microseconds(), x.id)
		if changed == 0 && err == nil {
			return kvqueue.ErrSessionLost, nil
		}
		return nil, err
	})
}

// End ends the session now.
func (x *session) End(ctx context.Context) error {
	return x.store.write(ctx, func(t *transaction) (refused, err error) { return nil, t.endSessions("id = ?", x.id) })
}

// endLate ends the sessions whose time is over, as every transaction does.
func (s *Store) endLate(ctx context.Context) error {
	return s.write(ctx, func(*transaction) (refused, err error) { return nil, nil })
}

// endSessions ends sessions. The keys of each vanish at a revision of its own.
func (t *transaction) endSessions(which string, arg any) error {
	var ids []int64
	err := t.query("SELECT id FROM session WHERE "+which, []any{arg}, func(row []driver.Value) bool {
		ids = append(ids, row[0].(int64))
		return true
	})
	for _, id := range ids {
		if err == nil {
			err = t.endSession(id)
		}
	}
	return err
}

func (t *transaction) endSession(id int64) error {
	var changes []byte
	err := t.query("DELETE FROM kv WHERE session = ? AND session > 0 RETURNING key", []any{id}, func(row []driver.Value) bool {
		changes = appendChange(changes, bytesOf(row[0]), nil, true)
		return true
	})
	if err != nil {
		return err
	}
	if _, err = t.exec("DELETE FROM session WHERE id = ?", id); err != nil || len(changes) == 0 {
		return err
	}
	t.rev++
	return t.note(changes)
}
