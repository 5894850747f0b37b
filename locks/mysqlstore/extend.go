package mysqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// many is for how many keys of one tenant a statement is. A last one that has fewer keys
// names one of them several times. An update that joins another table is several times as
// slow: the server writes down all that it will change before it does so.
const many = 500

var (
	keys = "tenant = ? AND `key` IN (" + strings.TrimSuffix(strings.Repeat("?, ", many), ", ") + ")"
	// lockKeysText leaves out the rows that somebody else has locked; see lockMany.
	lockKeysText = "SELECT `key`, holder_id, holder_version, holder_owner, fence, holder_acquired, holder_exp, holder_revoked, updated_us FROM lk_resource WHERE " + keys + " FOR UPDATE SKIP LOCKED"
	// extendText has the time, the lease, the time and the lease before the keys. All of
	// them were looked at.
	extendText = "UPDATE lk_resource SET updated_by = holder_owner, updated_us = greatest(updated_us, ?), holder_lease_us = ?, holder_exp = greatest(holder_exp, greatest(updated_us, ?) + ?) WHERE " + keys
)

// keysOf returns the parameters of keys, after some more.
func keysOf(before []any, tenant string, keys []string) []any {
	args := append(before, relational.Bytes(tenant))
	for i := range many {
		args = append(args, relational.Bytes(keys[min(i, len(keys)-1)]))
	}
	return args
}

// holder is a row of lockKeysText.
type holder struct {
	key     string
	updated int64
	book.Entry
}

func (h *holder) scan(scan func(dest ...any) error) error {
	var revoked int64
	err := scan(relational.String(&h.key), relational.String(&h.ID), relational.String(&h.Version), relational.String(&h.Owner),
		&h.Fence, &h.Acquired, &h.Expires, &revoked, &h.updated)
	h.Held, h.Permits, h.Revoked = true, 1, revoked != 0
	return err
}

// extend does what the book does. It says false if the book has to decide.
func (h *holder) extend(now int64, q *locks.Renewal) (g locks.Grant, ok bool) {
	now = max(now, h.updated)
	if h.ID != q.ID || h.Expires <= now || h.Revoked {
		return g, false
	}
	h.Lease = q.Lease.Microseconds()
	h.Expires = max(h.Expires, now+h.Lease)
	return h.Grant(), true
}

// Extend is one transaction: for each five hundred keys a statement that locks and reads
// them, and one that writes what becomes of them. One that is alone is left to the book,
// which waits for its row.
func (b *backend) Extend(ctx context.Context, renewals []*locks.Renewal) (map[*locks.Renewal]locks.Grant, error) {
	if len(renewals) == 1 {
		return nil, nil
	}
	byTenant := map[string]map[string]*locks.Renewal{} // a key that is named twice is left to the book
	for _, q := range renewals {
		if byTenant[q.Tenant] == nil {
			byTenant[q.Tenant] = map[string]*locks.Renewal{}
		}
		byTenant[q.Tenant][q.Key] = q
	}
	grants := make(map[*locks.Renewal]locks.Grant, len(renewals))
	err := b.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		clear(grants)
		for tenant, of := range byTenant {
			if err := b.extendTenant(ctx, tx, tenant, of, grants); err != nil {
				return err
			}
		}
		return nil
	})
	return grants, err
}

func (b *backend) extendTenant(ctx context.Context, tx *sql.Tx, tenant string, of map[string]*locks.Renewal, grants map[*locks.Renewal]locks.Grant) error {
	var all []string
	for key := range of {
		all = append(all, key)
	}
	slices.Sort(all)
	for chunk := range slices.Chunk(all, many) {
		var holders []holder
		err := relational.Query(ctx, tx.StmtContext(ctx, b.statements.lockKeys), keysOf(nil, tenant, chunk), func(scan func(...any) error) error {
			var h holder
			err := h.scan(scan)
			holders = append(holders, h)
			return err
		})
		if err != nil {
			return err
		}
		now, err := b.time(ctx, tx)
		if err != nil {
			return err
		}
		byLease := map[int64][]string{}
		for i := range holders {
			q := of[holders[i].key]
			if g, ok := holders[i].extend(now, q); ok {
				grants[q] = g
				byLease[holders[i].Lease] = append(byLease[holders[i].Lease], q.Key)
			}
		}
		for lease, keys := range byLease {
			if _, err := tx.StmtContext(ctx, b.statements.extend).ExecContext(ctx, keysOf([]any{now, lease, now, lease}, tenant, keys)...); err != nil {
				return err
			}
		}
	}
	return nil
}
