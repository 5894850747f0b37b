package mysqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// migrate makes the tables, or brings them to the version that this code has. Nothing is
// created if they are there, so a user who may not do that can use them. Several
// processes may do it at once.
func (b *backend) migrate(ctx context.Context) error {
	return b.retry(ctx, func(ctx context.Context) error {
		c, err := b.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if err := suits(ctx, c); err != nil {
			return err
		}
		if _, migrate, err := outdated(ctx, c); !migrate || err != nil {
			return err
		}
		var got sql.NullInt64
		if err := c.QueryRowContext(ctx, "SELECT get_lock('ambit locks schema', 60)").Scan(&got); err != nil {
			return err
		}
		if got.Int64 != 1 {
			return errMigrates
		}
		// The lock ends with the connection: one that cannot give it back, as when ctx is done,
		// does not go back to the pool. A step that its loss cut short is done again.
		defer func() {
			if _, err := c.ExecContext(ctx, "DO release_lock('ambit locks schema')"); err != nil {
				_ = c.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
		from, migrate, err := outdated(ctx, c)
		if !migrate || err != nil {
			return err
		}
		for _, statement := range dialect.Migration(from) {
			_, err := c.ExecContext(ctx, statement)
			var refused *mysql.MySQLError
			if errors.As(err, &refused) && (refused.Number == 1060 || refused.Number == 1061) {
				continue // the column or the index is there: a migration was cut short
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

var errMigrates = errors.New("somebody else has been making the tables for a minute: try again")

// suits says what the session is set to that the statements cannot live with.
func suits(ctx context.Context, c *sql.Conn) error {
	var mode string
	if err := c.QueryRowContext(ctx, "SELECT @@SESSION.sql_mode").Scan(&mode); err != nil {
		return err
	}
	if strings.Contains(mode, "SIMULTANEOUS_ASSIGNMENT") {
		return &locks.ValidationError{What: "sql_mode", Why: "it has SIMULTANEOUS_ASSIGNMENT, with which the fence of a lock would not be that of its lease: take it out for the pool of the locks"}
	}
	return nil
}

// outdated says which version the tables have, and whether they have to be changed.
func outdated(ctx context.Context, c *sql.Conn) (version int64, migrate bool, err error) {
	var tables int
	err = c.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'lk_schema'").Scan(&tables)
	if err != nil {
		return 0, false, err
	}
	if tables > 0 {
		if err := c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM lk_schema").Scan(&version); err != nil {
			return 0, false, err
		}
	}
	migrate, err = relational.CheckVersion(version)
	return version, migrate, err
}
