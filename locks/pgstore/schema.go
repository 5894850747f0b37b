package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ambit-go/ambit/locks/internal/relational"
)

// migrate makes the tables, or brings them to the version that this code has. Nothing is
// created if they are there, so a user who may not do that can use them. Several
// processes may do it at once.
func (b *backend) migrate(ctx context.Context) error {
	return b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if _, migrate, err := outdated(ctx, c); !migrate || err != nil {
			return err
		}
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			// "CREATE TABLE IF NOT EXISTS" of two at once fails for one of them.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('lk_schema'))"); err != nil {
				return err
			}
			from, migrate, err := outdated(ctx, tx)
			if !migrate || err != nil {
				return err
			}
			for _, statement := range dialect.Migration(from) {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// outdated says which version the tables have, and whether they have to be changed.
func outdated(ctx context.Context, c interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (version int64, migrate bool, err error) {
	var there bool
	if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('lk_schema'))").Scan(&there); err != nil {
		return 0, false, err
	}
	if there {
		if err := c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM lk_schema").Scan(&version); err != nil {
			return 0, false, err
		}
	}
	migrate, err = relational.CheckVersion(version)
	return version, migrate, err
}
