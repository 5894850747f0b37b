package sqlstore

import (
	"fmt"
	"strings"
	"sync"
)

// A dialect is how a database differs from the other.
type dialect struct {
	postgres bool
	words    *strings.Replacer
	texts    sync.Map // statements as they are written here -> as the database reads them
}

// newDialect returns the dialect of a database whose tables begin with prefix. Statements
// are written here as PostgreSQL reads them, with tq_ before each table and with these
// words in braces.
func newDialect(postgres bool, prefix string) *dialect {
	words := []string{
		"{text}", "TEXT", "{int}", "INTEGER", "{small}", "INTEGER", "{bytes}", "BLOB", "{table}", "WITHOUT ROWID",
		"{payload}", prefix + "payload", "{lock}", "", "{skip}", "", "{alone}", "", "$", "?", "tq_", prefix,
		"LIMIT $", "LIMIT 0+?", // SQLite would prepare a statement anew with each value of a LIMIT that is a mere parameter
	}
	if postgres {
		words = []string{
			"{text}", `TEXT COLLATE "C"`, "{int}", "BIGINT", "{small}", "SMALLINT", "{bytes}", "BYTEA", "{table}", "",
			"{payload}", prefix + "task", "{lock}", "FOR UPDATE", "{skip}", "FOR UPDATE SKIP LOCKED",
			"{alone}", " AND current_setting('transaction_isolation') <> 'serializable'", "tq_", prefix,
		}
	}
	return &dialect{postgres: postgres, words: strings.NewReplacer(words...)}
}

// read returns a statement as the database reads it.
func (d *dialect) read(text string) string {
	if known, ok := d.texts.Load(text); ok {
		return known.(string)
	}
	read := d.words.Replace(text)
	d.texts.Store(text, read)
	return read
}

// A column is one of a table, with its type as PostgreSQL names it.
type column struct{ name, kind string }

func names(columns []column) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.name
	}
	return strings.Join(all, ", ")
}

// idColumns are the key of a task.
var idColumns = []column{{"queue", "text"}, {"id", "text"}}

// A bulk is a statement about many rows at once. PostgreSQL gets them as one array for each
// column. SQLite gets the statement once for each row, which costs it less than a long one.
type bulk struct {
	columns          []column
	postgres, sqlite string
	list             bool // SQLite gets the queue and a list of ids, once
}

// from is the list of arrays as a table v.
func from(columns []column) string {
	arrays := make([]string, len(columns))
	for i, c := range columns {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, c.kind)
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS v(" + names(columns) + ")"
}

// places are the places of parameters of one row, from the given one on.
func places(from, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", from+i)
	}
	return strings.Join(all, ", ")
}

// insertion adds rows, but for those whose key is there. It returns the first two columns of
// each that was added.
func insertion(table string, columns ...column) *bulk {
	b := insert(table, " ON CONFLICT DO NOTHING", columns)
	b.postgres += " RETURNING " + names(columns[:2])
	return b
}

// upsertion adds rows. Where there is one of the same key, which are the first two columns, it sets another column.
func upsertion(table, set string, columns ...column) *bulk {
	return insert(table, " ON CONFLICT ("+names(columns[:2])+") DO UPDATE SET "+set+" = excluded."+set, columns)
}

func insert(table, conflict string, columns []column) *bulk {
	list := names(columns)
	return &bulk{
		columns:  columns,
		postgres: "INSERT INTO " + table + " (" + list + ") SELECT " + list + " FROM " + from(columns) + conflict,
		sqlite:   "INSERT INTO " + table + " (" + list + ") VALUES (" + places(1, len(columns)) + ")" + conflict,
	}
}

// change sets all columns but the first two, which are the key.
func change(table string, columns ...column) *bulk { return changeAlso(table, nil, columns...) }

// changeAlso is change that sets more, to what is the same for all rows.
func changeAlso(table string, more []string, columns ...column) *bulk {
	var arrays, row []string
	for i, c := range columns[2:] {
		arrays = append(arrays, c.name+" = v."+c.name)
		row = append(row, fmt.Sprintf("%s = $%d", c.name, i+3))
	}
	arrays, row = append(arrays, more...), append(row, more...)
	key := [2]string{columns[0].name, columns[1].name}
	return &bulk{
		columns: columns,
		postgres: fmt.Sprintf("UPDATE %s AS t SET %s FROM %s WHERE t.%s = v.%s AND t.%s = v.%s",
			table, strings.Join(arrays, ", "), from(columns), key[0], key[0], key[1], key[1]),
		sqlite: fmt.Sprintf("UPDATE %s SET %s WHERE %s = $1 AND %s = $2", table, strings.Join(row, ", "), key[0], key[1]),
	}
}

// removal deletes the rows that have all the columns.
func removal(table string, columns ...column) *bulk {
	var joined, row []string
	for i, c := range columns {
		joined = append(joined, "t."+c.name+" = v."+c.name)
		row = append(row, fmt.Sprintf("%s = $%d", c.name, i+1))
	}
	return &bulk{
		columns:  columns,
		postgres: "DELETE FROM " + table + " AS t USING " + from(columns) + " WHERE " + strings.Join(joined, " AND "),
		sqlite:   "DELETE FROM " + table + " WHERE " + strings.Join(row, " AND "),
	}
}

// reading reads columns of the rows of a table by their queue and id, and locks them if told.
func reading(table string, selected string, tail string) *bulk {
	list := strings.Split(selected, ", ")
	return &bulk{
		columns: idColumns,
		postgres: "SELECT t." + strings.Join(list, ", t.") + " FROM " + table + " AS t JOIN " + from(idColumns) +
			" ON t.queue = v.queue AND t.id = v.id " + tail,
		sqlite: "SELECT " + selected + " FROM " + table + " WHERE queue = $1 AND id IN (SELECT value FROM json_each($2))",
		list:   true,
	}
}

// arrays turns rows into an array for each column.
func (b *bulk) arrays(rows [][]any) []any {
	args := make([]any, len(b.columns))
	for i, c := range b.columns {
		switch c.kind {
		case "text":
			args[i] = array[string](rows, i)
		case "bytea":
			args[i] = array[[]byte](rows, i)
		case "float8":
			args[i] = array[float64](rows, i)
		default:
			args[i] = array[int64](rows, i)
		}
	}
	return args
}

func array[T any](rows [][]any, at int) []T {
	all := make([]T, len(rows))
	for i, row := range rows {
		all[i] = row[at].(T)
	}
	return all
}
