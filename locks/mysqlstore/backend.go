package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/pause"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// now is the time at which a statement began. It does not depend on the time zone of the
// session, where an hour comes twice in autumn. One that has waited for a row counts a
// lease from before it waited, which is the safe side.
const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

var dialect = &relational.Dialect{
	Integer: "BIGINT", Bytes: "VARBINARY(%d)", Blob: "LONGBLOB", Suffix: "ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
	Quote: "`", Now: now, Greatest: "greatest", Empty: "x''",
}

var text = dialect.Statements(" FOR UPDATE")

// backend is the Backend.
type backend struct {
	relational.Reads
	db         *sql.DB
	statements statements
	client     string // this process, in entries
	hub        *relational.Hub
	closed     atomic.Bool
	maria      bool
	// short says that a mutex may be taken by one statement: the server gives up soon what
	// waits for a row, or it would be granted long after its client has gone.
	short bool
	spare spare
}

// statements are those of all stores, and some more.
type statements struct {
	relational.Prepared
	clock, placeholder, take, give, lockKeys, extend *sql.Stmt
}

func (b *backend) prepare(ctx context.Context) error {
	s, take := &b.statements, takeText
	if b.maria {
		take = "SET STATEMENT innodb_lock_wait_timeout = 1 FOR " + take
	}
	return s.Prepare(ctx, b.db, text, []relational.Statement{
		{Stmt: &s.clock, Text: "SELECT " + now},
		// IGNORE would lock the row that is there for reading, and two that do so block each other.
		{Stmt: &s.placeholder, Text: text.Insert + " ON DUPLICATE KEY UPDATE kind = kind"},
		{Stmt: &s.take, Text: take}, {Stmt: &s.give, Text: giveText},
		{Stmt: &s.lockKeys, Text: lockKeysText}, {Stmt: &s.extend, Text: extendText},
	}...)
}

// retry repeats what the server has given up for the sake of another transaction, or
// because it has waited for too long.
func (b *backend) retry(ctx context.Context, do func(ctx context.Context) error) error {
	for {
		if b.closed.Load() {
			return locks.Unavailable(locks.ErrClosed)
		}
		err := do(ctx)
		var refused *mysql.MySQLError
		if !errors.As(err, &refused) || refused.Number != 1213 && refused.Number != 1205 || ctx.Err() != nil { // deadlock, lock wait timeout
			return failure(ctx, err)
		}
		if pause.For(ctx, time.Millisecond+rand.N(4*time.Millisecond)) != nil {
			return failure(ctx, err)
		}
	}
}

// transact has do run in a transaction. The isolation is set for each: that of the
// session may be another one, whose locks of gaps have more of them fail.
func (b *backend) transact(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	return b.retry(ctx, func(ctx context.Context) error {
		tx, done, err := b.begin(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		defer done()
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// time is the time after the row was locked.
func (b *backend) time(ctx context.Context, tx *sql.Tx) (t int64, err error) {
	err = tx.StmtContext(ctx, b.statements.clock).QueryRowContext(ctx).Scan(&t)
	return t, err
}

func (b *backend) Step(ctx context.Context, name locks.Name, create bool, step func(now int64, r *book.Resource)) error {
	load := func(ctx context.Context, tx *sql.Tx) (map[locks.Name]*relational.Loaded, error) {
		row, err := b.lock(ctx, tx, name, create)
		if err != nil {
			return nil, err
		}
		l, err := b.statements.Load(ctx, tx, name, row)
		return map[locks.Name]*relational.Loaded{name: l}, err
	}
	return b.steps(ctx, load, func(now int64, rs map[locks.Name]*book.Resource) { step(now, rs[name]) })
}

// steps takes a step on what load has locked in its transaction.
func (b *backend) steps(
	ctx context.Context, load func(ctx context.Context, tx *sql.Tx) (map[locks.Name]*relational.Loaded, error),
	steps func(now int64, rs map[locks.Name]*book.Resource),
) error {
	var hints []locks.Name
	err := b.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		loaded, err := load(ctx, tx)
		if err != nil {
			return err
		}
		now, err := b.time(ctx, tx)
		if err != nil {
			return err
		}
		hints, err = b.statements.Steps(ctx, tx, now, b.client, loaded, steps)
		return err
	})
	if err == nil {
		b.hub.Hints(hints)
	}
	return err
}

// lock locks the row of a resource. Where there is none and one may be made, it makes one
// to be locked, which nobody else ever sees: the step fills it in, or deletes it.
func (b *backend) lock(ctx context.Context, tx *sql.Tx, name locks.Name, create bool) (*relational.Row, error) {
	for {
		row, err := b.statements.ReadRow(ctx, tx, b.statements.Lock, name)
		if row != nil || err != nil || !create {
			return row, err
		}
		if _, err := tx.StmtContext(ctx, b.statements.placeholder).ExecContext(ctx, relational.Placeholder(name)...); err != nil {
			return nil, err
		}
	}
}
