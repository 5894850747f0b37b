package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

var dialect = &relational.Dialect{
	Types: [4]string{"INTEGER", "BLOB", "BLOB", "BLOB"}, Suffix: "WITHOUT ROWID",
	Now: "CAST($now AS INTEGER)", Greatest: "max", Empty: "x''", Numbered: "?",
}

var text = dialect.Statements("")

// file is the Backend.
type file struct {
	db         *sql.DB
	statements statements
	immediate  bool   // transactions of the pool begin as writers
	client     string // this process, in entries
	hub        *relational.Hub
	now        func() int64
	closed     atomic.Bool
	// writer has room for the one goroutine of the process that writes: SQLite has no
	// queue for writers, and those who find the file locked must sleep.
	writer chan struct{}
}

// statements are prepared for each connection when it first uses them.
type statements struct {
	begin                                                       *sql.Stmt
	read, entries, insert, update, remove, put, drop            *sql.Stmt
	page, around, deleted, bury, take, give, extend, extendMany *sql.Stmt
	all                                                         []*sql.Stmt
}

func (f *file) prepare(ctx context.Context) error {
	s := &f.statements
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.begin, "UPDATE lk_schema SET version = version WHERE 0"},
		{&s.read, text.Read}, {&s.entries, text.Entries}, {&s.insert, text.Insert}, {&s.update, text.Update}, {&s.remove, text.Delete},
		{&s.put, text.Put}, {&s.drop, text.Drop}, {&s.page, text.Page}, {&s.around, text.Around}, {&s.deleted, text.Deleted}, {&s.bury, text.Bury},
		{&s.take, text.Take}, {&s.give, text.Give}, {&s.extend, text.Extend}, {&s.extendMany, extendMany},
	} {
		err := f.retry(ctx, func(ctx context.Context) (err error) {
			*p.stmt, err = f.db.PrepareContext(ctx, p.text)
			return err
		})
		if err != nil {
			return err
		}
		s.all = append(s.all, *p.stmt)
	}
	return nil
}

func (s *statements) close() error {
	var errs []error
	for _, stmt := range s.all {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

// retry repeats what finds the file busy until ctx is done. What it does gets a context
// that is never done: it takes microseconds, and a statement that is not interrupted has
// no unknown outcome.
func (f *file) retry(ctx context.Context, do func(ctx context.Context) error) error {
	for {
		if ctx.Err() != nil {
			return locks.Unavailable(context.Cause(ctx))
		}
		if f.closed.Load() {
			return locks.Unavailable(locks.ErrClosed)
		}
		err := do(context.Background())
		if !busy(err) {
			return failure(err)
		}
		pause := time.NewTimer(time.Millisecond + rand.N(time.Millisecond))
		select {
		case <-ctx.Done():
			pause.Stop()
			return locks.Unavailable(errors.Join(context.Cause(ctx), err))
		case <-pause.C:
		}
	}
}

// write is retry for the only writer of the process.
func (f *file) write(ctx context.Context, do func(ctx context.Context) error) error {
	select {
	case f.writer <- struct{}{}:
		defer func() { <-f.writer }()
	case <-ctx.Done():
		return locks.Unavailable(context.Cause(ctx))
	}
	return f.retry(ctx, do)
}

// transact has do run in a transaction that nobody else writes beside, from its first
// statement on.
func (f *file) transact(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	return f.write(ctx, func(ctx context.Context) error {
		tx, err := f.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if !f.immediate {
			if _, err := tx.StmtContext(ctx, f.statements.begin).ExecContext(ctx); err != nil {
				return err
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// on returns a prepared statement for a transaction, or outside of any.
func on(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt) *sql.Stmt {
	if tx == nil {
		return stmt
	}
	return tx.StmtContext(ctx, stmt)
}

func (f *file) load(ctx context.Context, tx *sql.Tx, name locks.Name) (*relational.Loaded, error) {
	row, err := f.row(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		var deleted int64
		err := on(ctx, tx, f.statements.deleted).QueryRowContext(ctx).Scan(&deleted)
		return relational.Load(name, nil, nil, deleted), err
	}
	entries, err := f.entries(ctx, tx, name)
	return relational.Load(name, row, entries, 0), err
}

// row reads the row of a resource, nil if there is none.
func (f *file) row(ctx context.Context, tx *sql.Tx, name locks.Name) (*relational.Row, error) {
	var row relational.Row
	err := row.Scan(on(ctx, tx, f.statements.read).QueryRowContext(ctx, key(name)...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &row, err
}

func (f *file) entries(ctx context.Context, tx *sql.Tx, name locks.Name) ([]book.Entry, error) {
	rows, err := on(ctx, tx, f.statements.entries).QueryContext(ctx, key(name)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var entries []book.Entry
	for rows.Next() {
		var e relational.Entry
		if err := e.Scan(rows.Scan); err != nil {
			return nil, err
		}
		entries = append(entries, e.Entry)
	}
	return entries, rows.Err()
}

func key(name locks.Name) []any {
	return []any{relational.Bytes(name.Tenant), relational.Bytes(name.Key)}
}

// save writes what a step has changed. It says whether this process is to be hinted.
func (f *file) save(ctx context.Context, tx *sql.Tx, l *relational.Loaded, now int64) (hint bool, err error) {
	c := l.Change(now)
	s := &f.statements
	do := func(stmt *sql.Stmt, args []any) {
		if err == nil {
			_, err = tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
		}
	}
	switch {
	case c.Insert != nil:
		do(s.insert, c.Insert)
	case c.Update != nil:
		do(s.update, c.Update)
	case c.Delete:
		do(s.remove, key(l.Name))
		do(s.bury, []any{c.Bury})
	}
	for _, id := range c.Drop {
		do(s.drop, append(key(l.Name), relational.Bytes(id)))
	}
	for i := range c.Put {
		do(s.put, c.Put[i].Args())
	}
	return slices.Contains(c.Wake, f.client), err
}
