package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/locks/internal/relational"
)

// migrate makes the tables, or brings them to the version that this code has. Nothing is
// created if they are there, so a user who may not do that can use them. Several
// processes may do it at once.
func (b *backend) migrate(ctx context.Context) error {
	return b.transact(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		if migrate, err := outdated(ctx, c); !migrate || err != nil {
			return err
		}
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			// "CREATE TABLE IF NOT EXISTS" of two at once fails for one of them.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('lk_schema'))"); err != nil {
				return err
			}
			if migrate, err := outdated(ctx, tx); !migrate || err != nil {
				return err
			}
			for _, statement := range append(dialect.Tables(), "DELETE FROM lk_schema") {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, "INSERT INTO lk_schema (version, deleted) VALUES ($1, 0)", relational.Version)
			return err
		})
	})
}

// outdated says whether the tables have to be changed.
func outdated(ctx context.Context, c interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (bool, error) {
	var there bool
	if err := c.QueryRow(ctx, "SELECT to_regclass('lk_schema') IS NOT NULL").Scan(&there); err != nil {
		return false, err
	}
	var version int64
	if there {
		if err := c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM lk_schema").Scan(&version); err != nil {
			return false, err
		}
	}
	return relational.CheckVersion(version)
}
