package relational

import (
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/locks"
)

// Version is the version of the schema that this code has. Table lk_schema has that of
// the database.
const Version = 2

// CheckVersion says whether the schema must be changed, or why it cannot be used.
func CheckVersion(there int64) (migrate bool, err error) {
	if there > Version {
		return false, &locks.ValidationError{What: "schema", Why: fmt.Sprintf(
			"the tables have version %d, which a newer version of this program has made; this one knows version %d: install the newer one", there, Version)}
	}
	return there < Version, nil
}

// A columnType is what a column may hold.
type columnType int

const (
	integer columnType = iota
	tenant             // bytes
	key
	id
	long
	optional // bytes of any number, or NULL
)

// sizes are what the columns may hold, in bytes. The first three are an index together,
// for which MariaDB has 3,072.
var sizes = [...]int{tenant: 255, key: 1024, id: 255, long: 1024, optional: 0}

type column struct {
	name string
	columnType
}

// A Dialect is what SQL looks like in a database.
type Dialect struct {
	Integer  string // a type of 64 bits
	Bytes    string // a type of bytes; it may have the verb of a number, which is the most of them
	Blob     string // a type of bytes of any number
	Quote    string // around the names of columns
	Suffix   string // after CREATE TABLE (…)
	Now      string // the time in microseconds, or $now, a parameter of its own
	Greatest string
	Empty    string // no bytes
	// Numbered says whether parameters have numbers, so one can be used twice: what
	// they begin with. Empty: they are question marks.
	Numbered string
}

// Migration returns the statements that bring the tables of a version to that of this code;
// 0: there are none. PostgreSQL may say 0 where somebody has made them a moment ago, so each
// does no harm when it was done already; MySQL and MariaDB refuse some of them then.
func (d *Dialect) Migration(from int64) (statements []string) {
	if from == 1 {
		for table, columns := range since2 {
			for _, c := range columns {
				statements = append(statements, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s NOT NULL DEFAULT 0", table, c.name, d.Integer))
			}
		}
	}
	ifNew := "IF NOT EXISTS "
	if d.Numbered == "" {
		ifNew = "" // MySQL does not know it
	}
	return append(statements,
		d.table("lk_resource", resourceColumns, 2),
		d.table("lk_entry", entryColumns, 3),
		// Records that may go, by when to look for that. It does not change while a lock is
		// used.
		"CREATE INDEX "+ifNew+"lk_due ON lk_resource (bucket, due_us)",
		// The greatest fence of what was deleted of each bucket: a new resource begins above
		// it, even if the clock was set back.
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS lk_floor (bucket %s NOT NULL PRIMARY KEY, fence %[1]s NOT NULL)", d.Integer),
		// One row. deleted is the floor of version 1, for all buckets.
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS lk_schema (version %s NOT NULL PRIMARY KEY, deleted %[1]s NOT NULL)", d.Integer),
		fmt.Sprintf("INSERT INTO lk_schema (version, deleted) SELECT %d, coalesce(max(deleted), 0) FROM lk_schema HAVING coalesce(max(version), 0) < %[1]d", Version),
		fmt.Sprintf("DELETE FROM lk_schema WHERE version < %d", Version),
	)
}

func (d *Dialect) table(name string, columns []column, keys int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (\n", name)
	for _, c := range columns {
		fmt.Fprintf(&b, "\t%s %s", d.quote(c.name), d.typeOf(c.columnType))
		if c.columnType != optional {
			b.WriteString(" NOT NULL")
		}
		b.WriteString(",\n")
	}
	fmt.Fprintf(&b, "\tPRIMARY KEY (%s)\n) %s", d.names(columns[:keys]), d.Suffix)
	return b.String()
}

func (d *Dialect) typeOf(t columnType) string {
	switch {
	case t == integer:
		return d.Integer
	case t == optional:
		return d.Blob
	case strings.Contains(d.Bytes, "%d"):
		return fmt.Sprintf(d.Bytes, sizes[t])
	}
	return d.Bytes
}

func (d *Dialect) quote(name string) string { return d.Quote + name + d.Quote }

func (d *Dialect) names(columns []column) string { return strings.Join(d.quoted(columns), ", ") }

func (d *Dialect) quoted(columns []column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = d.quote(c.name)
	}
	return names
}

// ResourceColumns are the columns of a Row.
func (d *Dialect) ResourceColumns() []string { return d.quoted(resourceColumns) }

// EntryColumns are the columns of an Entry.
func (d *Dialect) EntryColumns() []string { return d.quoted(entryColumns) }
