package relational

import (
	"fmt"

	"github.com/ambit-go/ambit/locks"
)

// A FenceText are the two statements of locks.Fencer in a dialect.
type FenceText struct{ lock, left string }

// FenceText returns them. lock is the first, with %s for the condition: dialects differ in
// where a lock may stand. The second statement reads the rows as they are after that, not as
// they were when the transaction began: reread is what a dialect needs for that.
func (d *Dialect) FenceText(lock, reread string) *FenceText {
	key := func(n int) string { return fmt.Sprintf("tenant = %s AND %s = %s", d.p(n), d.quote("key"), d.p(n+1)) }
	until := func(column, table, more string) string {
		return fmt.Sprintf("coalesce((SELECT max(%s) FROM %s WHERE %s%s), 0)", column, table, more, reread)
	}
	return &FenceText{
		lock: fmt.Sprintf(lock, key(1)),
		left: d.fill(fmt.Sprintf("SELECT {max}(%s, %s) - {now}",
			until("holder_exp", "lk_resource", key(1)+" AND holder_id = "+d.p(3)),
			until("expires_us", "lk_entry", key(4)+" AND id = "+d.p(6)+" AND held = 1")), 7),
	}
}

// Queries are the statements for one lease. now is the time where that is a parameter.
func (t *FenceText) Queries(name locks.Name, id string, now ...any) (lock, left locks.Query) {
	key := []any{Bytes(name.Tenant), Bytes(name.Key)}
	lease := append(key[:2:2], Bytes(id))
	return locks.Query{SQL: t.lock, Args: key}, locks.Query{SQL: t.left, Args: append(append(lease[:3:3], lease...), now...)}
}
