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
	Floor   string // bucket: the greatest fence of what was deleted
	Bury    string // bucket, and the fence of what is deleted
	Due     string // bucket, time, most: keys of records that may go

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
		Put:     d.insert("lk_entry", entryColumns) + d.onConflict("tenant, key, id", "%[2]s = %[1]s", d.quoted(entryColumns[3:])...),
		Drop:    "DELETE FROM lk_entry WHERE " + key + " AND id = " + d.p(3),
		Page:    fmt.Sprintf("%stenant = %s AND %s > %s ORDER BY %s LIMIT %s", resource, d.p(1), d.quote("key"), d.p(2), d.quote("key"), d.p(3)),
		Around:  fmt.Sprintf("%stenant = %s AND %s >= %s AND %s <= %s ORDER BY %s, ticket", entry, d.p(1), d.quote("key"), d.p(2), d.quote("key"), d.p(3), d.quote("key")),
	}
	s.Touch = d.touch()
	s.Wakes = "SELECT wakes FROM lk_resource WHERE " + key
	s.Floor = fmt.Sprintf("SELECT %s(max(deleted), coalesce((SELECT fence FROM lk_floor WHERE bucket = %s), 0)) FROM lk_schema", d.Greatest, d.p(1))
	s.Bury = fmt.Sprintf("INSERT INTO lk_floor (bucket, fence) VALUES (%s, %s)", d.p(1), d.p(2)) + d.onConflict("bucket", "%[2]s = "+d.Greatest+"(lk_floor.%[2]s, %[1]s)", "fence")
	s.Due = fmt.Sprintf("SELECT tenant, %s FROM lk_resource WHERE bucket = %s AND due_us > 0 AND due_us <= %s ORDER BY due_us LIMIT %s",
		d.quote("key"), d.p(1), d.p(2), d.p(3))
	if d.Numbered != "" {
		s.Take, s.Give, s.Extend = d.fill(take, 10), d.fill(give, 5), d.fill(extend, 5)
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

// onConflict has an insert write columns of the row that is there. set has the verbs of the
// value that was to be inserted and of the name of a column.
func (d *Dialect) onConflict(key, set string, columns ...string) string {
	head, value := " ON CONFLICT ("+key+") DO UPDATE SET ", "excluded.%s"
	if d.Numbered == "" {
		head, value = " ON DUPLICATE KEY UPDATE ", "VALUES(%s)"
	}
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = fmt.Sprintf(set, fmt.Sprintf(value, c), c)
	}
	return head + strings.Join(all, ", ")
}

// fill makes a text from a template. now is the number of the parameter that is the
// time, where the time is a parameter.
func (d *Dialect) fill(template string, now int) string {
	text := strings.NewReplacer(
		"{now}", strings.ReplaceAll(d.Now, "$now", d.p(now)),
		"{max}", d.Greatest, "{none}", d.Empty,
		"$", d.Numbered,
	).Replace(template)
	return strings.Join(strings.Fields(text), " ")
}

// The three below say what the book says: time never goes behind the last change of the record; a
// holder whose lease is over is replaced; a lock that is shut, and one whose holder may
// shut it by its expiry, is left to the book.

// take has the parameters of TakeArgs. It makes no record: who inserts one may wait for
// somebody who deletes it, and would mint a fence from a time and a floor that were read
// before. The columns that are not named keep their values.
const take = `
UPDATE lk_resource AS r SET
	fence = {max}(r.fence + 1, {max}(r.updated_us, t.now)), ticket = r.ticket + 1, data = coalesce($8, r.data), lock_delay_us = $7,
	updated_by = $5, updated_us = {max}(r.updated_us, t.now),
	holder_id = $3, holder_version = $4, holder_prev = {none}, holder_owner = $5,
	holder_ticket = r.ticket + 1, holder_lease_us = $6, holder_delay_us = $7,
	holder_acquired = {max}(r.updated_us, t.now), holder_exp = {max}(r.updated_us, t.now) + $6,
	holder_revoked = 0, holder_delete = $9
FROM (SELECT {now} AS now) AS t
WHERE r.tenant = $1 AND r.key = $2 AND r.kind = 1 AND r.waiters = 0 AND r.shut_until <= {max}(r.updated_us, t.now)
	AND (r.holder_id = {none} OR (r.holder_exp <= {max}(r.updated_us, t.now) AND r.holder_delay_us = 0))
RETURNING fence, holder_acquired, holder_exp`

const give = `
UPDATE lk_resource SET holder_id = {none}, data = coalesce($4, data), updated_by = holder_owner, updated_us = {max}(updated_us, {now})
WHERE tenant = $1 AND key = $2 AND holder_id = $3 AND waiters = 0 AND holder_exp > {max}(updated_us, {now}) AND holder_delete = 0 AND delete_on_release = 0`

const extend = `
UPDATE lk_resource SET holder_lease_us = $4, holder_exp = {max}(holder_exp, {max}(updated_us, {now}) + $4), updated_by = holder_owner, updated_us = {max}(updated_us, {now})
WHERE tenant = $1 AND key = $2 AND holder_id = $3 AND holder_exp > {max}(updated_us, {now}) AND holder_revoked = 0
RETURNING ` + ExtendColumns

// ExtendColumns are what a renewal returns: see ScanExtended.
const ExtendColumns = "holder_id, holder_version, holder_owner, fence, holder_lease_us, holder_acquired, holder_exp"
