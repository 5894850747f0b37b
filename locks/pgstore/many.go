package pgstore

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// lockMany locks the rows of many resources in the order of their keys. A row that
// somebody else has locked, as FOR SHARE of a user does, is left out: one of them
// would hold up the renewal of all others.
var lockMany = strings.Replace(strings.TrimSuffix(text.Lock, " FOR UPDATE"), "tenant = $1 AND key = $2",
	"(tenant, key) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))", 1) + " ORDER BY tenant, key FOR UPDATE SKIP LOCKED"

// thereMany are the keys of those that exist, locked or not.
const thereMany = "SELECT tenant, key FROM lk_resource WHERE (tenant, key) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))"

var entriesMany = strings.Replace(text.Entries, "tenant = $1 AND key = $2", "(tenant, key) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))", 1)

func (b *backend) Steps(ctx context.Context, names []locks.Name, steps func(now int64, rs map[locks.Name]*book.Resource)) error {
	return b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		f, err := readMany(ctx, c, names)
		if err != nil {
			return err
		}
		loaded := make([]*relational.Loaded, 0, len(names))
		rs := make(map[locks.Name]*book.Resource, len(names))
		for _, name := range names {
			if f.rows[name] == nil && f.there[name] {
				continue // somebody else has it locked
			}
			l := relational.Load(name, f.rows[name], f.entries[name], 0)
			loaded, rs[name] = append(loaded, l), l.Resource
		}
		steps(f.now, rs)
		batch := &pgx.Batch{}
		for _, l := range loaded {
			queueSave(batch, l, f.now)
		}
		batch.Queue(commit)
		return send(ctx, c, batch)
	})
}

type foundMany struct {
	rows    map[locks.Name]*relational.Row
	there   map[locks.Name]bool
	entries map[locks.Name][]book.Entry
	now     int64
}

func readMany(ctx context.Context, c *pgx.Conn, names []locks.Name) (*foundMany, error) {
	f := &foundMany{rows: map[locks.Name]*relational.Row{}, there: map[locks.Name]bool{}, entries: map[locks.Name][]book.Entry{}}
	tenants, keys := make([][]byte, len(names)), make([][]byte, len(names))
	for i, name := range names {
		tenants[i], keys[i] = relational.Bytes(name.Tenant), relational.Bytes(name.Key)
	}
	batch := &pgx.Batch{}
	batch.Queue(begin)
	query := func(sql string, row func(scan func(...any) error) error) {
		batch.Queue(sql, tenants, keys).Query(func(rows pgx.Rows) error { return each(rows, nil, row) })
	}
	query(lockMany, func(scan func(...any) error) error {
		var r relational.Row
		err := r.Scan(scan)
		f.rows[r.Name] = &r
		return err
	})
	query(thereMany, func(scan func(...any) error) error {
		var name locks.Name
		err := scan(relational.String(&name.Tenant), relational.String(&name.Key))
		f.there[name] = true
		return err
	})
	query(entriesMany, func(scan func(...any) error) error {
		var e relational.Entry
		err := e.Scan(scan)
		f.entries[e.Name] = append(f.entries[e.Name], e.Entry)
		return err
	})
	queueClock(batch, &f.now)
	return f, send(ctx, c, batch)
}

// extendMany is Statements.Extend for many, in one statement. i is the place of each.
const extendMany = `
WITH t AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
q AS MATERIALIZED (
	SELECT r.tenant, r.key, q.id, q.lease, q.i FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[]) WITH ORDINALITY AS q (tenant, key, id, lease, i)
	JOIN lk_resource r ON r.tenant = q.tenant AND r.key = q.key AND r.holder_id = q.id
	ORDER BY r.tenant, r.key FOR UPDATE OF r SKIP LOCKED
)
UPDATE lk_resource r SET holder_lease_us = q.lease, holder_exp = greatest(r.holder_exp, greatest(r.updated_us, t.now) + q.lease),
	updated_by = r.holder_owner, updated_us = greatest(r.updated_us, t.now)
FROM q, t WHERE r.tenant = q.tenant AND r.key = q.key AND r.holder_id = q.id AND r.holder_exp > greatest(r.updated_us, t.now) AND r.holder_revoked = 0
RETURNING q.i, ` + relational.ExtendColumns

func (b *backend) Extend(ctx context.Context, renewals []*locks.Renewal) (map[*locks.Renewal]locks.Grant, error) {
	if len(renewals) == 1 {
		return b.extendOne(ctx, renewals[0])
	}
	tenants, keys, ids, leases := make([][]byte, len(renewals)), make([][]byte, len(renewals)), make([][]byte, len(renewals)), make([]int64, len(renewals))
	for i, q := range renewals {
		tenants[i], keys[i], ids[i], leases[i] = relational.Bytes(q.Tenant), relational.Bytes(q.Key), relational.Bytes(q.ID), q.Lease.Microseconds()
	}
	grants := make(map[*locks.Renewal]locks.Grant, len(renewals))
	err := b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		clear(grants)
		rows, err := c.Query(ctx, extendMany, tenants, keys, ids, leases)
		return each(rows, err, func(scan func(...any) error) error {
			var i int64
			g, err := relational.ScanExtended(func(dest ...any) error { return scan(slices.Insert(dest, 0, any(&i))...) })
			if err == nil {
				grants[renewals[i-1]] = g
			}
			return err
		})
	})
	return grants, err
}

// extendOne waits for the row.
func (b *backend) extendOne(ctx context.Context, q *locks.Renewal) (map[*locks.Renewal]locks.Grant, error) {
	grants := map[*locks.Renewal]locks.Grant{}
	err := b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		clear(grants)
		rows, err := c.Query(ctx, text.Extend, append(relational.Key(q.Name), relational.Bytes(q.ID), q.Lease.Microseconds())...)
		return each(rows, err, func(scan func(...any) error) (err error) {
			grants[q], err = relational.ScanExtended(scan)
			return err
		})
	})
	return grants, err
}
