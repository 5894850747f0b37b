package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

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
	err := f.transact(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		loaded := make(map[locks.Name]*relational.Loaded, len(names))
		for _, name := range names {
			if loaded[name], err = f.load(ctx, tx, name); err != nil {
				return err
			}
		}
		hints, err = f.statements.Steps(ctx, tx, f.now(), f.client, loaded, steps)
		return err
	})
	if err == nil {
		f.hub.Hints(hints)
	}
	return err
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
