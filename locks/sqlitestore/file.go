package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/pause"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

var dialect = &relational.Dialect{
	Integer: "INTEGER", Bytes: "BLOB", Blob: "BLOB", Suffix: "WITHOUT ROWID",
	Now: "CAST($now AS INTEGER)", Greatest: "max", Empty: "x''", Numbered: "?",
}

var text = dialect.Statements("")

// file is the Backend.
type file struct {
	relational.Reads
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

// statements are those of all stores, and some more.
type statements struct {
	relational.Prepared
	begin, take, give, extend, extendMany, wakes *sql.Stmt
}

func (f *file) prepare(ctx context.Context) error {
	return f.retry(ctx, func(ctx context.Context) error {
		s := &f.statements
		return s.Prepare(ctx, f.db, text, []relational.Statement{
			{Stmt: &s.begin, Text: "UPDATE lk_schema SET version = version WHERE 0"},
			{Stmt: &s.take, Text: text.Take}, {Stmt: &s.give, Text: text.Give}, {Stmt: &s.extend, Text: text.Extend},
			{Stmt: &s.extendMany, Text: extendMany}, {Stmt: &s.wakes, Text: text.Wakes},
		}...)
	})
}

// busyTime is how long a step waits at least that finds the file busy: about as long as
// most steps of others take. Then it waits for twice as long each time, up to 2 ms.
const busyTime = 125 * time.Microsecond

// retry repeats what finds the file busy until ctx is done. The repeated function gets a context
// that is never done: it takes microseconds, and a statement that is not interrupted has
// no unknown outcome.
func (f *file) retry(ctx context.Context, do func(ctx context.Context) error) error {
	short := busyTime
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
		if cause := pause.For(ctx, short+rand.N(short)); cause != nil {
			return locks.Unavailable(errors.Join(cause, err))
		}
		short = min(2*short, time.Millisecond)
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

// load reads a resource. Who writes has the whole file, so no row is to be locked.
func (f *file) load(ctx context.Context, tx *sql.Tx, name locks.Name) (*relational.Loaded, error) {
	row, err := f.statements.ReadRow(ctx, tx, f.statements.Read, name)
	if err != nil {
		return nil, err
	}
	return f.statements.Load(ctx, tx, name, row)
}
