package sqlstore

import (
	"context"
	"database/sql/driver"
	"encoding/json"
)

// A database carries out transactions.
type database interface {
	// transact has f run in a transaction of a mode. If f returns an error, nothing of the
	// transaction stays. It is repeated if it could not be carried out because of others, so f
	// begins anew each time.
	transact(ctx context.Context, m mode, f func(tx) error) error
	dialect() *dialect
	close() error
}

// A mode says what a transaction may do.
type mode uint8

const (
	reads  mode = iota // sees all as of one moment, and writes nothing
	writes             // on SQLite nobody else writes meanwhile
)

// A tx is a transaction that goes on.
type tx interface {
	// run carries out statements in their order. They go to a server together.
	run(all ...query) error
	// end is run, and makes the transaction durable in the same message to a server. Nothing
	// may follow.
	end(all ...query) error
}

// A query is one statement, or a bulk with its rows, and where its results go.
type query struct {
	text string
	args []any // of a bulk: those that all rows share, behind their own
	bulk *bulk
	rows [][]any
	// each is called with what scans a row, once for each row of the result.
	each func(scan scanner) error
	// added is called with each row of an insertion that was added, by its place in rows.
	added func(row int)
	// affected is how many rows were changed.
	affected *int64
	// clock is set to the time. Such a query has nothing else, but for brief: on PostgreSQL the
	// transaction waits for what others have locked for a short time only, each time.
	clock *moment
	brief bool
}

// A moment is a time by the clocks of the store, in µs.
type moment struct {
	wall   int64 // since 1970
	steady int64 // by a clock that nobody puts forward or back, if there is one
	boot   string
}

// in is the query of a bulk about rows; nothing if there are none.
func in(b *bulk, rows [][]any) query { return query{bulk: b, rows: rows} }

// empty reports whether there is nothing to be sent.
func (q *query) empty() bool { return q.text == "" && q.clock == nil && len(q.rows) == 0 }

// row is the query of at most one row.
func row(text string, args []any, into ...any) query {
	return eachRow(text, args, func(scan scanner) error { return scan(into...) })
}

func eachRow(text string, args []any, each func(scanner) error) query {
	return query{text: text, args: args, each: each}
}

func statement(text string, args ...any) query { return query{text: text, args: args} }

// A scanner reads the columns of one row of a result.
type scanner = func(into ...any) error

// scanAll calls each with every row of a result, of pgx or of package database/sql.
func scanAll(rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}, each func(scanner) error) error {
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// each1, each2 and each3 call f with the columns of each row.
func each1[A any](f func(A)) func(scanner) error {
	return func(scan scanner) (err error) {
		var a A
		if err = scan(&a); err == nil {
			f(a)
		}
		return err
	}
}

func each2[A, B any](f func(A, B)) func(scanner) error {
	return func(scan scanner) (err error) {
		var a A
		var b B
		if err = scan(&a, &b); err == nil {
			f(a, b)
		}
		return err
	}
}

func each3[A, B, C any](f func(A, B, C)) func(scanner) error {
	return func(scan scanner) (err error) {
		var a A
		var b B
		var c C
		if err = scan(&a, &b, &c); err == nil {
			f(a, b, c)
		}
		return err
	}
}

// runEach carries out statements one after the other, a bulk once for each row.
func runEach(all []query, clock func() moment, once func(q *query, text string, args []any, at int) error) error {
	for i := range all {
		q := &all[i]
		var err error
		switch {
		case q.empty():
		case q.clock != nil:
			*q.clock = clock()
		case q.bulk == nil:
			err = once(q, q.text, q.args, -1)
		case q.bulk.list:
			err = once(q, q.bulk.sqlite, q.listed(), -1)
		default:
			for at, args := range q.rows {
				if err = once(q, q.bulk.sqlite, append(args, q.args...), at); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listed are the parameters of a reading on SQLite: the queue, which is the same in all rows,
// and the ids as a list.
func (q *query) listed() []any {
	ids := make([]string, len(q.rows))
	for i, r := range q.rows {
		ids[i] = r[1].(string)
	}
	list, err := json.Marshal(ids)
	if err != nil {
		panic(err) // they are texts
	}
	return []any{q.rows[0][0], string(list)}
}

// told notes how many rows a statement about one row has changed.
func (q *query) told(result driver.Result, err error, at int) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if n > 0 && at >= 0 && q.added != nil {
		q.added(at)
	}
	if q.affected != nil {
		*q.affected += n
	}
	return err
}
