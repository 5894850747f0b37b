package mysqlstore

import (
	"context"
	"strings"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// These are the short ways of package relational, for a dialect without RETURNING. An
// assignment sees the values of those before it. LAST_INSERT_ID(x) is x, and comes back
// with the answer.

// takeText counts a lease from its fence, which is the time. If the clock is behind the last
// fence, or the last change of the record, the book has to decide.
var takeText = strings.NewReplacer("{now}", now).Replace(`
UPDATE lk_resource SET fence = LAST_INSERT_ID({now}), ticket = ticket + 1, data = coalesce(?, data), lock_delay_us = ?,
	updated_by = ?, updated_us = fence, holder_id = ?, holder_version = ?, holder_prev = x'', holder_owner = ?, holder_ticket = ticket,
	holder_lease_us = ?, holder_delay_us = ?, holder_acquired = fence, holder_exp = fence + ?, holder_revoked = 0, holder_delete = ?
WHERE tenant = ? AND ` + "`key`" + ` = ? AND kind = 1 AND waiters = 0 AND fence < {now} AND updated_us <= {now} AND shut_until <= {now}
	AND (holder_id = x'' OR (holder_exp <= {now} AND holder_delay_us = 0))`)

var giveText = strings.NewReplacer("{now}", now).Replace(`
UPDATE lk_resource SET holder_id = x'', data = coalesce(?, data), updated_by = holder_owner, updated_us = greatest(updated_us, {now})
WHERE tenant = ? AND ` + "`key`" + ` = ? AND holder_id = ? AND waiters = 0 AND holder_exp > greatest(updated_us, {now}) AND holder_delete = 0 AND delete_on_release = 0`)

func (b *backend) Take(ctx context.Context, name locks.Name, q *locks.Request) (g locks.Grant, ok bool, err error) {
	if !b.short {
		return g, false, nil
	}
	data, owner, lease, delay := relational.OptionalBytes(q.Data), relational.Bytes(q.Owner), q.Lease.Microseconds(), q.LockDelay.Microseconds()
	args := []any{
		data, delay, owner, relational.Bytes(q.ID), relational.Bytes(q.Version), owner, lease, delay, lease, q.DeleteOnRelease,
		relational.Bytes(name.Tenant), relational.Bytes(name.Key),
	}
	var fence int64
	err = b.retry(ctx, func(ctx context.Context) error {
		result, err := b.statements.take.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		if ok = changed > 0; ok {
			fence, err = result.LastInsertId()
		}
		return err
	})
	return relational.Taken(q, fence, fence, fence+lease), ok && err == nil, err
}

func (b *backend) Give(ctx context.Context, name locks.Name, id string, data *string) (given bool, err error) {
	args := append([]any{relational.OptionalBytes(data)}, append(relational.Key(name), relational.Bytes(id))...)
	err = b.retry(ctx, func(ctx context.Context) error {
		result, err := b.statements.give.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		given = changed > 0
		return err
	})
	return given, err
}
