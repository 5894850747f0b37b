package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// many is how many leases of one length a statement renews. More do not make it faster.
const many = 100

// extendMany is Statements.Extend for many: the time, the lease, then tenant, key and ID
// of each. SQLite finds each row by its key.
var extendMany = fmt.Sprintf(`UPDATE lk_resource SET holder_lease_us = ?2, holder_exp = max(holder_exp, max(updated_us, ?1) + ?2),
	updated_by = holder_owner, updated_us = max(updated_us, ?1)
WHERE (tenant, key, holder_id) IN (VALUES %s) AND holder_exp > max(updated_us, ?1) AND holder_revoked = 0
RETURNING %s`, strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", many), ", "), relational.ExtendColumns)

// Extend is one transaction: a statement for each hundred leases of one length, and one
// for each that is left.
func (f *file) Extend(ctx context.Context, renewals []*locks.Renewal) (map[*locks.Renewal]locks.Grant, error) {
	batches, rest := batches(renewals)
	grants := make(map[*locks.Renewal]locks.Grant, len(renewals))
	err := f.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		clear(grants)
		now := f.now()
		for _, batch := range batches {
			if err := f.extendBatch(ctx, tx, now, batch, grants); err != nil {
				return err
			}
		}
		one := tx.StmtContext(ctx, f.statements.extend)
		for _, q := range rest {
			args := append(relational.Key(q.Name), relational.Bytes(q.ID), q.Lease.Microseconds(), now)
			g, err := relational.ScanExtended(one.QueryRowContext(ctx, args...).Scan)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			grants[q] = g
		}
		return nil
	})
	return grants, err
}

func (f *file) extendBatch(ctx context.Context, tx *sql.Tx, now int64, batch map[string]*locks.Renewal, grants map[*locks.Renewal]locks.Grant) error {
	args := []any{now, int64(0)}
	for _, q := range batch {
		args[1] = q.Lease.Microseconds() // that of all
		args = append(append(args, relational.Key(q.Name)...), relational.Bytes(q.ID))
	}
	return relational.Query(ctx, tx.StmtContext(ctx, f.statements.extendMany), args, func(scan func(...any) error) error {
		g, err := relational.ScanExtended(scan)
		grants[batch[g.ID]] = g
		return err
	})
}

// batches sorts renewals into batches of many, each of one lease and of different IDs,
// for the answers of a statement come in any order. The rest has what is left.
func batches(renewals []*locks.Renewal) (full []map[string]*locks.Renewal, rest []*locks.Renewal) {
	open := map[int64]map[string]*locks.Renewal{} // by lease
	for _, q := range renewals {
		lease := q.Lease.Microseconds()
		batch := open[lease]
		if batch == nil {
			batch = make(map[string]*locks.Renewal, many)
			open[lease] = batch
		}
		if batch[q.ID] != nil {
			rest = append(rest, q)
			continue
		}
		if batch[q.ID] = q; len(batch) == many {
			full = append(full, batch)
			delete(open, lease)
		}
	}
	for _, batch := range open {
		for _, q := range batch {
			rest = append(rest, q)
		}
	}
	return full, rest
}
