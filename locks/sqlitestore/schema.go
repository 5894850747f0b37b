package sqlitestore

import (
	"context"
	"database/sql"

	"github.com/ambit-go/ambit/locks/internal/relational"
)

// migrate makes the tables, or brings them to the version that this code has. Several
// processes may do it at once.
func (f *file) migrate(ctx context.Context) error {
	migrate := false
	err := f.retry(ctx, func(ctx context.Context) error {
		there, err := version(ctx, f.db.QueryRowContext)
		if err == nil {
			migrate, err = relational.CheckVersion(there)
		}
		return err
	})
	if err != nil || !migrate {
		return err
	}
	return f.write(ctx, func(ctx context.Context) error {
		conn, err := f.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		if err := f.makeTables(ctx, conn); err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
			return err
		}
		_, err = conn.ExecContext(ctx, "COMMIT")
		if err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
		return err
	})
}

func (f *file) makeTables(ctx context.Context, conn *sql.Conn) error {
	there, err := version(ctx, conn.QueryRowContext)
	if err != nil {
		return err
	}
	if migrate, err := relational.CheckVersion(there); !migrate || err != nil {
		return err
	}
	for _, statement := range append(dialect.Migration(there), clockTable) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// version returns the version of the tables, 0 if there are none.
func version(ctx context.Context, query func(context.Context, string, ...any) *sql.Row) (version int64, err error) {
	var tables int
	if err := query(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'lk_schema'").Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	err = query(ctx, "SELECT coalesce(max(version), 0) FROM lk_schema").Scan(&version)
	return version, err
}

// path returns where the file is, empty for a database in memory.
func (f *file) path(ctx context.Context) (path string, err error) {
	err = f.retry(ctx, func(ctx context.Context) error {
		return f.db.QueryRowContext(ctx, "SELECT coalesce(file, '') FROM pragma_database_list WHERE name = 'main'").Scan(&path)
	})
	return path, err
}
