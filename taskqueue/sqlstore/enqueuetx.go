package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ambit-go/ambit/taskqueue"
)

var _ taskqueue.TxStore = (*Store)(nil)

// EnqueueTx is the method of taskqueue.TxStore: tx is a *sql.Tx or a pgx.Tx of the database of
// the store, which need not be of its pool.
//
// On PostgreSQL it only inserts rows. It may wait for another transaction that adds a task of
// the same id or unique key. At REPEATABLE READ and above the server may refuse it as it does
// others (40001), and the transaction is to be repeated. On SQLite tx keeps all others from
// writing from then on: begin it with BEGIN IMMEDIATE, and keep it shorter than a third of a
// lease.
func (s *Store) EnqueueTx(ctx context.Context, of any, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckTasks(tasks)); err != nil {
		return nil, err
	}
	t, err := s.within(ctx, of)
	if err != nil {
		return nil, err
	}
	all := make([]*taskqueue.Task, len(tasks))
	for i := range tasks {
		all[i] = &tasks[i]
	}
	st := newStep(t, queue)
	a := s.adding(st, all)
	a.foreign = true
	install := ""
	switch err := t.run(row("SELECT install FROM tq_schema", nil, &install)); {
	case missing(err):
		return nil, fmt.Errorf("%w: %w", taskqueue.ErrOtherDatabase, err)
	case err != nil:
		return nil, sqliteError(err)
	case install != s.install:
		return nil, taskqueue.ErrOtherDatabase
	}
	if err := t.run(a.look()...); err != nil {
		return nil, sqliteError(err)
	}
	results, err := a.add()
	if err == nil {
		err = t.run(append(a.tell(), st.note("d:"+rand.Text(), false))...)
	}
	return results, sqliteError(err)
}

// missing reports whether an error says that there is no such table.
func missing(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42P01" || err != nil && strings.Contains(err.Error(), "no such table")
}

// within returns a transaction of a user as a step sees it.
func (s *Store) within(ctx context.Context, of any) (tx, error) {
	switch db := s.db.(type) {
	case *file:
		if db.closed.Load() {
			return nil, taskqueue.ErrClosed
		}
		if t, ok := of.(*sql.Tx); ok && t != nil {
			return &poolTx{f: db, tx: t}, nil
		}
	case *server:
		if db.closed.Load() {
			return nil, taskqueue.ErrClosed
		}
		switch t := of.(type) {
		case pgx.Tx:
			return &serverTx{s: db, ctx: ctx, sender: t, foreign: true}, nil
		case *sql.Tx:
			if t != nil {
				return &foreignTx{s: db, ctx: ctx, tx: t}, nil
			}
		}
	}
	if t, ok := of.(*sql.Tx); of == nil || ok && t == nil {
		return nil, &taskqueue.InvalidError{What: "tx", Why: "it is nil: pass what Begin of the database has returned"}
	}
	return nil, &taskqueue.InvalidError{What: "tx", Why: fmt.Sprintf("a %T is no transaction of the database: pass a *sql.Tx, or a pgx.Tx for PostgreSQL", of)}
}

// A foreignTx is a transaction of package database/sql on PostgreSQL, whose driver has to take
// slices for arrays, as that of pgx does.
type foreignTx struct {
	s   *server
	ctx context.Context
	tx  *sql.Tx
}

func (t *foreignTx) end(all ...query) error { return t.run(all...) }

func (t *foreignTx) run(all ...query) error {
	for i := range all {
		if q := &all[i]; !q.empty() {
			if err := t.once(q); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *foreignTx) once(q *query) error {
	text, args := q.text, q.args
	if q.bulk != nil {
		text, args = q.bulk.postgres, q.bulk.arrays(q.rows)
	}
	if q.clock != nil {
		err := t.tx.QueryRowContext(t.ctx, foreignClockText).Scan(&q.clock.wall)
		q.clock.steady = q.clock.wall
		return err
	}
	each := q.returned()
	if each == nil {
		_, err := t.tx.ExecContext(t.ctx, t.s.d.read(text), args...)
		return err
	}
	rows, err := t.tx.QueryContext(t.ctx, t.s.d.read(text), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return scanAll(rows, each)
}
