package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
)

// A pool is the *sql.DB of a user, of any driver for SQLite.
type pool struct {
	db        *sql.DB
	prepared  sync.Map   // statement -> *sql.Stmt
	preparing sync.Mutex // each statement is prepared once
}

func (p *pool) alone() bool { return false }

// close closes what the store has prepared. The pool is the user's.
func (p *pool) close() (err error) {
	p.prepared.Range(func(_, s any) bool { err = errors.Join(err, s.(*sql.Stmt).Close()); return true })
	return err
}

// known returns a statement that was prepared for all connections; nil if it was not.
func (p *pool) known(text string) *sql.Stmt {
	if p != nil {
		if s, ok := p.prepared.Load(text); ok {
			return s.(*sql.Stmt)
		}
	}
	return nil
}

func (p *pool) once(ctx context.Context, m mode, f *file, do func(tx) error) error {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer func() { _ = conn.Close() }()
	begun, err := conn.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: m == reads})
	if err != nil {
		return err
	}
	defer func() { _ = begun.Rollback() }() // after a commit it does nothing
	t := &poolTx{f: f, p: p, tx: begun}
	if m == writes {
		// The pool of a user begins as a reader, as a rule: a first statement that writes has the
		// file locked.
		if _, err := begun.Exec(f.d.read("UPDATE tq_schema SET version = version WHERE 0")); err != nil && !strings.Contains(err.Error(), "no such table") {
			return err
		}
	}
	if err := do(t); err != nil {
		return err
	}
	switch err = begun.Commit(); {
	case err == nil:
		_ = conn.Close() // it may be the only one of the pool
		p.prepare(ctx, t.fresh)
	case !isBusy(err):
		return unknownError{err} // a part of it that is on the disk may be the whole
	}
	return err
}

// prepare has statements prepared for all connections, outside of any transaction: a pool of
// one connection has none for it before. Those that another call prepares, or ctx keeps from it, are left to later calls.
func (p *pool) prepare(ctx context.Context, texts []string) {
	if len(texts) == 0 || !p.preparing.TryLock() {
		return
	}
	defer p.preparing.Unlock()
	for _, text := range texts {
		if _, ok := p.prepared.Load(text); ok {
			continue
		}
		if s, err := p.db.PrepareContext(ctx, text); err == nil {
			p.prepared.Store(text, s)
		}
	}
}

type poolTx struct {
	f  *file
	p  *pool // nil: a transaction of a user
	tx *sql.Tx
	// of are the statements as the transaction uses them, fresh those that nobody has used before.
	of    map[string]*sql.Stmt
	fresh []string
}

// prepared returns a statement of the transaction.
func (t *poolTx) prepared(text string) (*sql.Stmt, error) {
	text = t.f.d.read(text)
	if s := t.of[text]; s != nil {
		return s, nil
	}
	var s *sql.Stmt
	if known := t.p.known(text); known != nil {
		s = t.tx.Stmt(known)
	} else {
		var err error
		if s, err = t.tx.Prepare(text); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(text, "CREATE") {
			t.fresh = append(t.fresh, text)
		}
	}
	if t.of == nil {
		t.of = map[string]*sql.Stmt{}
	}
	t.of[text] = s
	return s, nil
}

func (t *poolTx) end(all ...query) error { return t.run(all...) }

func (t *poolTx) run(all ...query) error { return runEach(all, t.f.clock, t.once) }

func (t *poolTx) once(q *query, text string, args []any, at int) error {
	s, err := t.prepared(text)
	if err != nil {
		return err
	}
	if q.each == nil {
		result, err := s.Exec(args...)
		return q.told(result, err, at)
	}
	rows, err := s.Query(args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return scanAll(rows, q.each)
}
