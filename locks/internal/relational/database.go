package relational

import (
	"context"
	"database/sql"
	"errors"
	"slices"

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

// A Statement is one more for a [Prepared].
type Statement struct {
	Stmt **sql.Stmt
	Text string
}

// Prepare prepares all statements but Take, Give and Extend, and more. Close closes all. If one
// cannot be prepared, none is.
func (p *Prepared) Prepare(ctx context.Context, db *sql.DB, s *Statements, more ...Statement) error {
	for _, one := range append([]Statement{
		{&p.Lock, s.Lock}, {&p.Read, s.Read}, {&p.Entries, s.Entries}, {&p.Insert, s.Insert}, {&p.Update, s.Update}, {&p.Delete, s.Delete},
		{&p.Put, s.Put}, {&p.Drop, s.Drop}, {&p.Touch, s.Touch}, {&p.Page, s.Page}, {&p.Around, s.Around}, {&p.Floor, s.Floor}, {&p.Bury, s.Bury}, {&p.Due, s.Due},
	}, more...) {
		stmt, err := db.PrepareContext(ctx, one.Text)
		if err != nil {
			_ = p.Close()
			return err
		}
		*one.Stmt, p.all = stmt, append(p.all, stmt)
	}
	return nil
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

// Steps takes a step on resources that a transaction has loaded, and writes what has changed. hints are
// those of which client is to be told that it is its turn, when the transaction has been committed.
func (p *Prepared) Steps(
	ctx context.Context, tx *sql.Tx, now int64, client string, loaded map[locks.Name]*Loaded,
	steps func(now int64, rs map[locks.Name]*book.Resource),
) (hints []locks.Name, err error) {
	rs := make(map[locks.Name]*book.Resource, len(loaded))
	for name, l := range loaded {
		rs[name] = l.Resource
	}
	steps(now, rs)
	for name, l := range loaded {
		c := l.Change(now)
		if err := p.Save(ctx, tx, name, c); err != nil {
			return nil, err
		}
		if slices.Contains(c.Wake, client) {
			hints = append(hints, name)
		}
	}
	return hints, nil
}

// Reads are the methods of a Backend over a [sql.DB] that change nothing.
type Reads struct {
	Prepared *Prepared
	DB       *sql.DB
	Options  sql.TxOptions // of a transaction that reads all as of one moment
	Retry    func(ctx context.Context, do func(ctx context.Context) error) error
	Time     func(ctx context.Context, tx *sql.Tx) (int64, error) // of the store
}

// look has do read in a transaction, and then reads the time.
func (r *Reads) look(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) (now int64, err error) {
	err = r.Retry(ctx, func(ctx context.Context) error {
		tx, err := r.DB.BeginTx(ctx, &r.Options)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := do(ctx, tx); err != nil {
			return err
		}
		now, err = r.Time(ctx, tx)
		return err
	})
	return now, err
}

// Read is a method of Backend.
func (r *Reads) Read(ctx context.Context, name locks.Name) (now int64, res *book.Resource, err error) {
	now, err = r.look(ctx, func(ctx context.Context, tx *sql.Tx) error {
		row, err := r.Prepared.ReadRow(ctx, tx, r.Prepared.Read, name)
		if err != nil {
			return err
		}
		l, err := r.Prepared.Load(ctx, tx, name, row)
		if err == nil {
			res = l.Resource
		}
		return err
	})
	return now, res, err
}

// Page is a method of Backend.
func (r *Reads) Page(ctx context.Context, tenant, after string, most int) (now int64, rs []*book.Resource, err error) {
	now, err = r.look(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		rs, err = ReadPage(tenant, after, most, func(n int, args []any, row func(scan func(...any) error) error) error {
			return Query(ctx, tx.StmtContext(ctx, []*sql.Stmt{r.Prepared.Page, r.Prepared.Around}[n]), args, row)
		})
		return err
	})
	return now, rs, err
}

// Due is a method of Backend.
func (r *Reads) Due(ctx context.Context, bucket, now int64, most int) (names []locks.Name, err error) {
	err = r.Retry(ctx, func(ctx context.Context) error {
		names = nil
		return Query(ctx, r.Prepared.Due, []any{bucket, now, most}, func(scan func(...any) error) error {
			var name locks.Name
			err := scan(String(&name.Tenant), String(&name.Key))
			names = append(names, name)
			return err
		})
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
