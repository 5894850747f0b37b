package relational

import (
	"fmt"
	"strconv"
	"strings"
)

// Statements are the texts that a dialect has for what all stores do. Values are
// always parameters.
type Statements struct {
	Lock    string // tenant, key: the columns of a Row, locked where a dialect can do so
	Read    string // tenant, key: the columns of a Row
	Entries string // tenant, key: the columns of Entries
	Insert  string // all columns of a Row
	Update  string // all columns of a Row, the key last
	Delete  string // tenant, key
	Put     string // all columns of an Entry
	Drop    string // tenant, key, id
	Touch   string // expires, tenant, key, and touched times an id
	Wakes   string // tenant, key: one column of a Row
	Page    string // tenant, after, most: Rows
	Around  string // tenant, first key, last key: Entries
	Deleted string // the greatest fence of what was deleted
	Bury    string // the fence of what is deleted

	// Take, Give and Extend are what is done to a mutex that nobody waits for, without
	// reading it first. They change nothing where the book is needed to decide. Only
	// dialects with numbered parameters have them here.
	Take   string // see TakeArgs: fence, acquired, expires
	Give   string // tenant, key, id, data, the time if it is a parameter
	Extend string // tenant, key, id, lease, the time if it is a parameter
}

// Statements returns the texts. lock is what is added to a SELECT to lock its rows.
func (d *Dialect) Statements(lock string) *Statements {
	key := fmt.Sprintf("tenant = %s AND %s = %s", d.p(1), d.quote("key"), d.p(2))
	resource := "SELECT " + d.names(resourceColumns) + " FROM lk_resource WHERE "
	entry := "SELECT " + d.names(entryColumns) + " FROM lk_entry WHERE "
	s := &Statements{
		Lock:    resource + key + lock,
		Read:    resource + key,
		Entries: entry + key + " ORDER BY ticket",
		Insert:  d.insert("lk_resource", resourceColumns),
		Update:  d.update(),
		Delete:  "DELETE FROM lk_resource WHERE " + key,
		Put:     d.insert("lk_entry", entryColumns) + d.onConflict(),
		Drop:    "DELETE FROM lk_entry WHERE " + key + " AND id = " + d.p(3),
		Page:    fmt.Sprintf("%stenant = %s AND %s > %s ORDER BY %s LIMIT %s", resource, d.p(1), d.quote("key"), d.p(2), d.quote("key"), d.p(3)),
		Around:  fmt.Sprintf("%stenant = %s AND %s >= %s AND %s <= %s ORDER BY %s, ticket", entry, d.p(1), d.quote("key"), d.p(2), d.quote("key"), d.p(3), d.quote("key")),
	}
	s.Touch = d.touch()
	s.Wakes = "SELECT wakes FROM lk_resource WHERE " + key
	s.Deleted = "SELECT deleted FROM lk_schema"
	s.Bury = fmt.Sprintf("UPDATE lk_schema SET deleted = %s(deleted, %s)", d.Greatest, d.p(1))
	if d.Numbered != "" {
		s.Take, s.Give, s.Extend = d.fill(take, 11), d.fill(give, 5), d.fill(extend, 5)
	}
	return s
}

// p returns the parameter of a number.
func (d *Dialect) p(n int) string {
	if d.Numbered == "" {
		return "?"
	}
	return d.Numbered + strconv.Itoa(n)
}

func (d *Dialect) insert(table string, columns []column) string {
	values := make([]string, len(columns))
	for i := range columns {
		values[i] = d.p(i + 1)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, d.names(columns), strings.Join(values, ", "))
}

func (d *Dialect) update() string {
	var set []string
	for i, c := range resourceColumns[2:] {
		set = append(set, d.quote(c.name)+" = "+d.p(i+1))
	}
	n := len(resourceColumns)
	return fmt.Sprintf("UPDATE lk_resource SET %s WHERE tenant = %s AND %s = %s", strings.Join(set, ", "), d.p(n-1), d.quote("key"), d.p(n))
}

// touched is how many entries Touch writes at once.
const touched = 100

func (d *Dialect) touch() string {
	ids := make([]string, touched)
	for i := range ids {
		ids[i] = d.p(4 + i)
	}
	return fmt.Sprintf("UPDATE lk_entry SET expires_us = %s WHERE tenant = %s AND %s = %s AND id IN (%s)", d.p(1), d.p(2), d.quote("key"), d.p(3), strings.Join(ids, ", "))
}

func (d *Dialect) onConflict() string {
	head, value := " ON CONFLICT (tenant, key, id) DO UPDATE SET ", "%s = excluded.%[1]s"
	if d.Numbered == "" {
		head, value = " ON DUPLICATE KEY UPDATE ", "%s = VALUES(%[1]s)"
	}
	var set []string
	for _, c := range entryColumns[3:] {
		set = append(set, fmt.Sprintf(value, d.quote(c.name)))
	}
	return head + strings.Join(set, ", ")
}

// fill makes a text from a template. now is the number of the parameter that is the
// time, where the time is a parameter.
func (d *Dialect) fill(template string, now int) string {
	text := strings.NewReplacer(
		"{now}", strings.ReplaceAll(d.Now, "$now", d.p(now)),
		"{max}", d.Greatest, "{none}", d.Empty, "{bytes}", d.Blob, "{int}", d.Integer,
		"$", d.Numbered,
	).Replace(template)
	return strings.Join(strings.Fields(text), " ")
}

// The three below say what the book says: time never goes behind the last fence; a
// holder whose lease is over is replaced; a lock that is shut, and one whose holder may
// shut it by its expiry, is left to the book.

// take has the parameters of TakeArgs. The columns that are not named in the UPDATE
// keep their values. shut_until of the new row is the time, for the UPDATE: what the
// clock says, without what was deleted.
const take = `
INSERT INTO lk_resource AS r (tenant, key, kind, max_n, lease_us, fair, delete_on_release, lock_delay_us, shut_until, fence, ticket, version, data,
	created_by, created_us, updated_by, updated_us, waiters, wakes, holder_id, holder_version, holder_prev, holder_owner, holder_ticket,
	holder_lease_us, holder_delay_us, holder_acquired, holder_exp, holder_revoked, holder_delete)
SELECT CAST($1 AS {bytes}), CAST($2 AS {bytes}), 1, 1, CAST($6 AS {int}), CAST($9 AS {int}), 0, CAST($7 AS {int}), t.now, {max}(t.now, t.deleted + 1), 1,
	CAST($4 AS {bytes}), CAST($8 AS {bytes}),
	CAST($5 AS {bytes}), {max}(t.now, t.deleted), CAST($5 AS {bytes}), {max}(t.now, t.deleted), 0, 0, CAST($3 AS {bytes}), CAST($4 AS {bytes}), {none}, CAST($5 AS {bytes}), 1,
	CAST($6 AS {int}), CAST($7 AS {int}), {max}(t.now, t.deleted), {max}(t.now, t.deleted) + CAST($6 AS {int}), 0, CAST($10 AS {int})
FROM (SELECT {now} AS now, deleted FROM lk_schema) AS t WHERE true
ON CONFLICT (tenant, key) DO UPDATE SET
	fence = {max}(r.fence + 1, excluded.shut_until), ticket = r.ticket + 1, data = coalesce(excluded.data, r.data), lock_delay_us = excluded.lock_delay_us,
	updated_by = excluded.updated_by, updated_us = {max}(r.fence, excluded.shut_until),
	holder_id = excluded.holder_id, holder_version = excluded.holder_version, holder_prev = excluded.holder_prev, holder_owner = excluded.holder_owner,
	holder_ticket = r.ticket + 1, holder_lease_us = excluded.holder_lease_us, holder_delay_us = excluded.holder_delay_us,
	holder_acquired = {max}(r.fence, excluded.shut_until), holder_exp = {max}(r.fence, excluded.shut_until) + excluded.holder_lease_us,
	holder_revoked = 0, holder_delete = excluded.holder_delete
WHERE r.kind = 1 AND r.waiters = 0 AND r.shut_until <= {max}(r.fence, excluded.shut_until)
	AND (r.holder_id = {none} OR (r.holder_exp <= {max}(r.fence, excluded.shut_until) AND r.holder_delay_us = 0))
RETURNING fence, holder_acquired, holder_exp`

const give = `
UPDATE lk_resource SET holder_id = {none}, data = coalesce($4, data), updated_by = holder_owner, updated_us = {max}(fence, {now})
WHERE tenant = $1 AND key = $2 AND holder_id = $3 AND waiters = 0 AND holder_exp > {max}(fence, {now}) AND holder_delete = 0 AND delete_on_release = 0`

const extend = `
UPDATE lk_resource SET holder_lease_us = $4, holder_exp = {max}(holder_exp, {max}(fence, {now}) + $4), updated_by = holder_owner, updated_us = {max}(fence, {now})
WHERE tenant = $1 AND key = $2 AND holder_id = $3 AND holder_exp > {max}(fence, {now}) AND holder_revoked = 0
RETURNING ` + ExtendColumns

// ExtendColumns are what a renewal returns: see ScanExtended.
const ExtendColumns = "holder_id, holder_version, holder_owner, fence, holder_lease_us, holder_acquired, holder_exp"
