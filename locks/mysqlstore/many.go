package mysqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// table is a table of rows of a JSON parameter. Bytes are in hex there. STRAIGHT_JOIN has
// the server look up the other table by its key for each of them.
const table = "JSON_TABLE(?, '$[*]' COLUMNS (%s)) AS q STRAIGHT_JOIN %s AS r ON r.tenant = unhex(q.t) AND r.`key` = unhex(q.k)"

const textColumn = " VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.%s'"

func rows(of string) string {
	return fmt.Sprintf(table, "t"+fmt.Sprintf(textColumn, "t")+", k"+fmt.Sprintf(textColumn, "k")+", w BIGINT PATH '$.w'", of)
}

// line is a row of such a table.
type line struct {
	Tenant string `json:"t"`
	Key    string `json:"k"`
	Wakes  int64  `json:"w"` // that were seen
}

var (
	// lockMany leaves out the rows that somebody else has locked, as a user does who has
	// read one of them FOR SHARE: one of them would hold up the renewal of all others.
	lockMany    = "SELECT " + of("r", dialect.ResourceColumns()) + " FROM " + rows("lk_resource") + " FOR UPDATE SKIP LOCKED"
	thereMany   = "SELECT r.tenant, r.`key` FROM " + rows("lk_resource")
	entriesMany = "SELECT " + of("r", dialect.EntryColumns()) + " FROM " + rows("lk_entry") + " ORDER BY r.ticket"
)

// of puts the name of a table before each column.
func of(table string, columns []string) string {
	return table + "." + strings.Join(columns, ", "+table+".")
}

// lockRows locks the rows of many resources. None of them is waited for, so their order does not matter.
func lockRows(ctx context.Context, tx *sql.Tx, lines string) (map[locks.Name]*relational.Row, error) {
	locked := map[locks.Name]*relational.Row{}
	err := query(ctx, tx, lockMany, lines, func(scan func(...any) error) error {
		var r relational.Row
		err := r.Scan(scan)
		locked[r.Name] = &r
		return err
	})
	return locked, err
}

func query(ctx context.Context, tx *sql.Tx, text, lines string, row func(scan func(...any) error) error) error {
	rows, err := tx.QueryContext(ctx, text, lines)
	return relational.Each(rows, err, row)
}

// linesOf has the wakes of each lock, too.
func linesOf(wakes map[locks.Name]int64) (string, error) {
	lines := []line{}
	for name, wakes := range wakes {
		lines = append(lines, line{Tenant: hex.EncodeToString([]byte(name.Tenant)), Key: hex.EncodeToString([]byte(name.Key)), Wakes: wakes})
	}
	text, err := json.Marshal(lines)
	return string(text), err
}

// all has no wakes.
func all(names []locks.Name) map[locks.Name]int64 {
	wakes := make(map[locks.Name]int64, len(names))
	for _, name := range names {
		wakes[name] = 0
	}
	return wakes
}

func (b *backend) Steps(ctx context.Context, names []locks.Name, steps func(now int64, rs map[locks.Name]*book.Resource)) error {
	lines, err := linesOf(all(names))
	if err != nil {
		return err
	}
	return b.steps(ctx, func(ctx context.Context, tx *sql.Tx) (map[locks.Name]*relational.Loaded, error) {
		return b.loadMany(ctx, tx, names, lines)
	}, steps)
}

// loadMany leaves out what somebody else has locked.
func (b *backend) loadMany(ctx context.Context, tx *sql.Tx, names []locks.Name, lines string) (map[locks.Name]*relational.Loaded, error) {
	locked, err := lockRows(ctx, tx, lines)
	if err != nil {
		return nil, err
	}
	there := map[locks.Name]bool{}
	err = query(ctx, tx, thereMany, lines, func(scan func(...any) error) error {
		var name locks.Name
		err := scan(relational.String(&name.Tenant), relational.String(&name.Key))
		there[name] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	entries := map[locks.Name][]book.Entry{}
	err = query(ctx, tx, entriesMany, lines, func(scan func(...any) error) error {
		var e relational.Entry
		err := e.Scan(scan)
		entries[e.Name] = append(entries[e.Name], e.Entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	loaded := make(map[locks.Name]*relational.Loaded, len(names))
	for _, name := range names {
		if row := locked[name]; row != nil || !there[name] {
			loaded[name] = relational.Load(name, row, entries[name], 0)
		}
	}
	return loaded, nil
}
