package sqlitekv

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// A link is one connection to the file. One goroutine at a time uses it. Its calls get no context
// that ever ends: a statement that is not interrupted has no unknown outcome.
type link struct {
	conn     driver.Conn
	prepared map[string]driver.Stmt
}

func (l *link) close() (err error) {
	for _, s := range l.prepared {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, l.conn.Close())
}

func (l *link) statement(text string) (driver.Stmt, error) {
	if s := l.prepared[text]; s != nil {
		return s, nil
	}
	s, err := l.conn.Prepare(text)
	if err == nil {
		l.prepared[text] = s
	}
	return s, err
}

func values(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, v := range args {
		if b, ok := v.([]byte); ok && b == nil {
			v = []byte{} // nil would be NULL
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values
}

// exec carries out a statement, and returns how many rows it has changed.
func (l *link) exec(text string, args ...any) (changed int64, err error) {
	s, err := l.statement(text)
	if err != nil {
		return 0, err
	}
	result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), values(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls each with every row of a result, until it returns false.
func (l *link) query(text string, args []any, each func(row []driver.Value) bool) (err error) {
	s, err := l.statement(text)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), values(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for row := make([]driver.Value, len(rows.Columns())); ; {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !each(row):
			return nil
		}
	}
}

// number returns the one number that a query results in; there is false if it has no row, or NULL.
func (l *link) number(text string, args ...any) (n int64, there bool, err error) {
	err = l.query(text, args, func(row []driver.Value) bool {
		n, there = row[0].(int64)
		return false
	})
	return n, there, err
}

// within has do run in a transaction that begins so. Nothing of it stays if do returns an error.
func (l *link) within(begin string, do func() error) (err error) {
	if _, err := l.exec(begin); err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also if do panics
			_, _ = l.exec("ROLLBACK") // after some errors SQLite has done so
		}
	}()
	if err := do(); err != nil {
		return err
	}
	_, err = l.exec("COMMIT")
	if done = err == nil; !done && !is(err, busy, locked, full) {
		return &unsureError{err} // the part of it that is on the disk may be the whole
	}
	return err
}

// An unsureError is the error of a transaction that may have been done.
type unsureError struct{ error }

func (e *unsureError) Unwrap() error { return e.error }

func bytesOf(v driver.Value) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case nil:
		return nil
	default:
		panic(fmt.Sprintf("sqlitekv: a column of bytes has a %T", v))
	}
}
