package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

func (f *file) Step(ctx context.Context, name locks.Name, _ bool, step func(now int64, r *book.Resource)) error {
	return f.Steps(ctx, []locks.Name{name}, func(now int64, rs map[locks.Name]*book.Resource) { step(now, rs[name]) })
}

// Steps skips nothing: who writes has the whole file.
func (f *file) Steps(ctx context.Context, names []locks.Name, steps func(now int64, rs map[locks.Name]*book.Resource)) error {
	var hints []locks.Name
	err := f.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		hints = hints[:0]
		loaded := make(map[locks.Name]*relational.Loaded, len(names))
		rs := make(map[locks.Name]*book.Resource, len(names))
		for _, name := range names {
			l, err := f.load(ctx, tx, name)
			if err != nil {
				return err
			}
			loaded[name], rs[name] = l, l.Resource
		}
		now := f.now()
		steps(now, rs)
		for name, l := range loaded {
			c := l.Change(now)
			if err := f.statements.Save(ctx, tx, name, c); err != nil {
				return err
			}
			if slices.Contains(c.Wake, f.client) {
				hints = append(hints, name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range hints {
		f.hub.Hint(name)
	}
	return nil
}

func (f *file) Read(ctx context.Context, name locks.Name) (now int64, r *book.Resource, err error) {
	err = f.look(ctx, func(ctx context.Context, tx *sql.Tx) error {
		l, err := f.load(ctx, tx, name)
		if err == nil {
			now, r = f.now(), l.Resource
		}
		return err
	})
	return now, r, err
}

// look has do read in a transaction, all of it as of one moment.
func (f *file) look(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	return f.retry(ctx, func(ctx context.Context) error {
		tx, err := f.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		return do(ctx, tx)
	})
}

func (f *file) Due(ctx context.Context, bucket, now int64, most int) (names []locks.Name, err error) {
	err = f.retry(ctx, func(ctx context.Context) error {
		names, err = f.statements.ReadDue(ctx, bucket, now, most)
		return err
	})
	return names, err
}

func (f *file) Page(ctx context.Context, tenant, after string, most int) (now int64, rs []*book.Resource, err error) {
	err = f.look(ctx, func(ctx context.Context, tx *sql.Tx) error {
		page, err := f.statements.ReadPage(ctx, tx, tenant, after, most)
		now, rs = f.now(), page
		return err
	})
	return now, rs, err
}

func (f *file) Take(ctx context.Context, name locks.Name, q *locks.Request) (g locks.Grant, ok bool, err error) {
	args := append(relational.TakeArgs(name, q), nil)
	var fence, acquired, expires int64
	err = f.write(ctx, func(ctx context.Context) error {
		args[len(args)-1] = f.now()
		return f.statements.take.QueryRowContext(ctx, args...).Scan(&fence, &acquired, &expires)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return g, false, nil
	}
	return relational.Taken(q, fence, acquired, expires), err == nil, err
}

func (f *file) Give(ctx context.Context, name locks.Name, id string, data *string) (given bool, err error) {
	args := append(relational.Key(name), relational.Bytes(id), relational.OptionalBytes(data), nil)
	err = f.write(ctx, func(ctx context.Context) error {
		args[len(args)-1] = f.now()
		result, err := f.statements.give.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		given = n > 0
		return err
	})
	return given, err
}
