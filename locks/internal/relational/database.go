package relational

import (
	"context"
	"database/sql"
	"errors"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// Prepared are statements for a [sql.DB], which prepares each for a connection when
// that first uses it. The fields are those of Statements.
type Prepared struct {
	Lock, Read, Entries, Insert, Update, Delete, Put, Drop, Touch *sql.Stmt
	Page, Around, Floor, Bury, Due                                *sql.Stmt

	all []*sql.Stmt
}

// Prepare prepares all statements but Take, Give and Extend.
func (p *Prepared) Prepare(ctx context.Context, db *sql.DB, s *Statements) error {
	for _, one := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&p.Lock, s.Lock}, {&p.Read, s.Read}, {&p.Entries, s.Entries}, {&p.Insert, s.Insert}, {&p.Update, s.Update}, {&p.Delete, s.Delete},
		{&p.Put, s.Put}, {&p.Drop, s.Drop}, {&p.Touch, s.Touch}, {&p.Page, s.Page}, {&p.Around, s.Around}, {&p.Floor, s.Floor}, {&p.Bury, s.Bury}, {&p.Due, s.Due},
	} {
		if err := p.Add(ctx, db, one.stmt, one.text); err != nil {
			return err
		}
	}
	return nil
}

// Add prepares one more, which Close closes too.
func (p *Prepared) Add(ctx context.Context, db *sql.DB, stmt **sql.Stmt, text string) (err error) {
	if *stmt, err = db.PrepareContext(ctx, text); err == nil {
		p.all = append(p.all, *stmt)
	}
	return err
}

// Close closes all of them.
func (p *Prepared) Close() error {
	var errs []error
	for _, stmt := range p.all {
		errs = append(errs, stmt.Close())
	}
	p.all = nil
	return errors.Join(errs...)
}

// Key are the values of the key of a resource.
func Key(name locks.Name) []any { return []any{Bytes(name.Tenant), Bytes(name.Key)} }

// on returns a statement for a transaction, or outside of any.
func on(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt) *sql.Stmt {
	if tx == nil {
		return stmt
	}
	return tx.StmtContext(ctx, stmt)
}

// ReadRow reads the row of a resource, nil if there is none. stmt is p.Lock or p.Read.
func (p *Prepared) ReadRow(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, name locks.Name) (*Row, error) {
	var row Row
	err := row.Scan(on(ctx, tx, stmt).QueryRowContext(ctx, Key(name)...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &row, err
}

// ReadEntries reads the entries of a resource.
func (p *Prepared) ReadEntries(ctx context.Context, tx *sql.Tx, name locks.Name) (entries []book.Entry, err error) {
	err = Query(ctx, on(ctx, tx, p.Entries), Key(name), func(scan func(...any) error) error {
		var e Entry
		err := e.Scan(scan)
		entries = append(entries, e.Entry)
		return err
	})
	return entries, err
}

// Load reads what follows the row of a resource, for a step. The statements come after
// the one that has locked the row, and see all that was done before.
func (p *Prepared) Load(ctx context.Context, tx *sql.Tx, name locks.Name, row *Row) (*Loaded, error) {
	if row == nil || !row.Exists {
		var floor int64
		err := on(ctx, tx, p.Floor).QueryRowContext(ctx, book.Bucket(name)).Scan(&floor)
		return Load(name, row, nil, floor), err
	}
	entries, err := p.ReadEntries(ctx, tx, name)
	return Load(name, row, entries, 0), err
}

// Save writes what a step has changed.
func (p *Prepared) Save(ctx context.Context, tx *sql.Tx, name locks.Name, c Change) (err error) {
	do := func(stmt *sql.Stmt, args []any) {
		if err == nil {
			_, err = tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
		}
	}
	switch {
	case c.Insert != nil:
		do(p.Insert, c.Insert)
	case c.Update != nil:
		do(p.Update, c.Update)
	case c.Delete:
		do(p.Delete, Key(name))
	}
	for _, id := range c.Drop {
		do(p.Drop, append(Key(name), Bytes(id)))
	}
	for i := range c.Put {
		do(p.Put, c.Put[i].Args())
	}
	c.Touches(name, func(args []any) { do(p.Touch, args) })
	if c.Bury > 0 { // last: it is one row for many
		do(p.Bury, []any{book.Bucket(name), c.Bury})
	}
	return err
}

// ReadPage is Backend.Page within a transaction.
func (p *Prepared) ReadPage(ctx context.Context, tx *sql.Tx, tenant, after string, most int) ([]*book.Resource, error) {
	return ReadPage(tenant, after, most, func(n int, args []any, row func(scan func(...any) error) error) error {
		return Query(ctx, tx.StmtContext(ctx, []*sql.Stmt{p.Page, p.Around}[n]), args, row)
	})
}

// ReadDue is Backend.Due.
func (p *Prepared) ReadDue(ctx context.Context, bucket, now int64, most int) (names []locks.Name, err error) {
	err = Query(ctx, p.Due, []any{bucket, now, most}, func(scan func(...any) error) error {
		var name locks.Name
		err := scan(String(&name.Tenant), String(&name.Key))
		names = append(names, name)
		return err
	})
	return names, err
}

// Query calls row for each row of a query.
func Query(ctx context.Context, stmt *sql.Stmt, args []any, row func(scan func(dest ...any) error) error) error {
	rows, err := stmt.QueryContext(ctx, args...)
	return Each(rows, err, row)
}

// Each calls row for each of some rows, if the query that has returned them has not failed.
func Each(rows *sql.Rows, err error, row func(scan func(dest ...any) error) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
