package pgstore

import (
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/pause"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// dialect leaves room in the pages for new versions of rows: no index has a column that
// changes, so the server does not touch the indexes then.
var dialect = &relational.Dialect{
	Integer: "BIGINT", Bytes: "BYTEA", Blob: "BYTEA", Suffix: "WITH (fillfactor = 50)",
	Now: "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", Greatest: "greatest", Empty: "''::bytea", Numbered: "$",
}

var text = dialect.Statements(" FOR UPDATE")

const (
	// begin does not trust the isolation that is set for the database: at a higher one
	// the entries are read as they were before the row was locked.
	begin  = "BEGIN ISOLATION LEVEL READ COMMITTED"
	commit = "COMMIT"
	// clock is a statement after the one that has locked the row: what is in the list of
	// that one is found out before it waits. A process that is stopped in the middle has
	// the row locked: the server ends its transaction.
	clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, set_config('idle_in_transaction_session_timeout', '2000', true)"
)

// backend is the Backend.
type backend struct {
	pool   *pgxpool.Pool
	client string // this process, in entries and as the name of its channel
	hub    *relational.Hub
	closed atomic.Bool
	spare  spare
}

// ended says that the server has ended the connection: perhaps before it was asked for
// anything, perhaps after it had done it.
func ended(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code == "57P01"
}

// retry repeats what the server has given up for the sake of another transaction, and
// what a connection of the pool could not do because the server had ended it. A statement that is
// repeated may have been done, so its answer is the same when it is done twice.
func (b *backend) retry(ctx context.Context, do func(ctx context.Context) error) error {
	for stale := 0; ; {
		if b.closed.Load() {
			return locks.Unavailable(locks.ErrClosed)
		}
		err := do(ctx)
		var refused *pgconn.PgError
		switch {
		case err == nil || errors.Is(err, locks.ErrUnavailable):
			return err
		case errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01"): // serialization, deadlock
			_ = pause.For(ctx, time.Millisecond+rand.N(4*time.Millisecond))
		case (pgconn.SafeToRetry(err) || ended(err)) && stale < 100: // one for each connection of a large pool
			stale++
		default:
			return failure(ctx, err)
		}
		if ctx.Err() != nil {
			return failure(ctx, err)
		}
	}
}

// transact has do run on one connection, which begins and ends a transaction by itself.
// A connection that is left within one is closed by the pool.
func (b *backend) transact(ctx context.Context, do func(ctx context.Context, c *pgx.Conn) error) error {
	return b.retry(ctx, func(ctx context.Context) error {
		c, done, err := b.conn(ctx)
		if err != nil {
			return err
		}
		defer done()
		err = do(ctx, c)
		if err != nil && !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
			_, _ = c.Exec(ctx, "ROLLBACK")
		}
		return err
	})
}

// send sends all statements of a batch at once: one round trip.
func send(ctx context.Context, c *pgx.Conn, batch *pgx.Batch) error {
	return c.SendBatch(ctx, batch).Close()
}

// found is what was read of a resource.
type found struct {
	name    locks.Name
	row     *relational.Row
	entries []book.Entry
	now     int64
	floor   int64
}

func (f *found) load() *relational.Loaded {
	return relational.Load(f.name, f.row, f.entries, f.floor)
}

// queue adds to a batch what reads the resource: its row, by a statement that locks it or
// not, then its entries, then the time.
func (f *found) queue(batch *pgx.Batch, row string) {
	batch.Queue(row, relational.Key(f.name)...).QueryRow(func(r pgx.Row) error {
		f.row = new(relational.Row)
		err := f.row.Scan(r.Scan)
		if errors.Is(err, pgx.ErrNoRows) {
			f.row, err = nil, nil
		}
		return err
	})
	batch.Queue(text.Entries, relational.Key(f.name)...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var e relational.Entry
			if err := e.Scan(rows.Scan); err != nil {
				return err
			}
			f.entries = append(f.entries, e.Entry)
		}
		return rows.Err()
	})
	queueClock(batch, &f.now)
}

func queueClock(batch *pgx.Batch, now *int64) {
	batch.Queue(clock).QueryRow(func(r pgx.Row) error {
		var timeout string
		return r.Scan(now, &timeout)
	})
}

// placeholder makes a row to be locked where there is none. Nobody else ever sees it:
// the step fills it in, or deletes it.
var placeholder = text.Insert + " ON CONFLICT DO NOTHING"

func (b *backend) Step(ctx context.Context, name locks.Name, create bool, step func(now int64, r *book.Resource)) error {
	return b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		f := &found{name: name}
		batch := &pgx.Batch{}
		batch.Queue(begin)
		f.queue(batch, text.Lock)
		if err := send(ctx, c, batch); err != nil {
			return err
		}
		for f.row == nil && create {
			f = &found{name: name}
			batch := &pgx.Batch{}
			batch.Queue(placeholder, relational.Placeholder(name)...)
			f.queue(batch, text.Lock) // finds none if another one was there, and was deleted since
			batch.Queue(text.Floor, book.Bucket(name)).QueryRow(func(r pgx.Row) error { return r.Scan(&f.floor) })
			if err := send(ctx, c, batch); err != nil {
				return err
			}
		}
		l := f.load()
		step(f.now, l.Resource)
		batch = &pgx.Batch{}
		queueSave(batch, l, f.now)
		batch.Queue(commit)
		err := send(ctx, c, batch)
		if ended(err) {
			err = failure(ctx, err) // it is not repeated: the step may have been done
		}
		return err
	})
}

// queueSave adds to a batch what writes the changes of a step, and tells those who can
// be granted the lock now.
func queueSave(batch *pgx.Batch, l *relational.Loaded, now int64) {
	c := l.Change(now)
	switch {
	case c.Insert != nil:
		batch.Queue(text.Insert, c.Insert...)
	case c.Update != nil:
		batch.Queue(text.Update, c.Update...)
	case c.Delete:
		batch.Queue(text.Delete, relational.Key(l.Name)...)
	}
	for _, id := range c.Drop {
		batch.Queue(text.Drop, append(relational.Key(l.Name), relational.Bytes(id))...)
	}
	for i := range c.Put {
		batch.Queue(text.Put, c.Put[i].Args()...)
	}
	c.Touches(l.Name, func(args []any) { batch.Queue(text.Touch, args...) })
	if c.Bury > 0 { // last: it is one row for many
		batch.Queue(text.Bury, book.Bucket(l.Name), c.Bury)
	}
	for _, client := range c.Wake {
		batch.Queue("SELECT pg_notify($1, $2)", channel(client), hex.EncodeToString([]byte(l.Name.Tenant))+":"+hex.EncodeToString([]byte(l.Name.Key)))
	}
}

func (b *backend) Read(ctx context.Context, name locks.Name) (now int64, r *book.Resource, err error) {
	err = b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		f := &found{name: name}
		batch := &pgx.Batch{}
		batch.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		f.queue(batch, text.Read)
		batch.Queue(commit)
		if err := send(ctx, c, batch); err != nil {
			return err
		}
		now, r = f.now, f.load().Resource
		return nil
	})
	return now, r, err
}

func (b *backend) Page(ctx context.Context, tenant, after string, most int) (now int64, rs []*book.Resource, err error) {
	err = b.transact(ctx, func(ctx context.Context, c *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		queueClock(batch, &now)
		if err := send(ctx, c, batch); err != nil {
			return err
		}
		var err error
		rs, err = relational.ReadPage(tenant, after, most, func(n int, args []any, row func(scan func(...any) error) error) error {
			rows, err := c.Query(ctx, []string{text.Page, text.Around}[n], args...)
			return each(rows, err, row)
		})
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, commit)
		return err
	})
	return now, rs, err
}

func (b *backend) Due(ctx context.Context, bucket, now int64, most int) (names []locks.Name, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		names = nil
		rows, err := b.pool.Query(ctx, text.Due, bucket, now, most)
		return each(rows, err, func(scan func(...any) error) error {
			var name locks.Name
			err := scan(relational.String(&name.Tenant), relational.String(&name.Key))
			names = append(names, name)
			return err
		})
	})
	return names, err
}

// each calls row for each row of a query.
func each(rows pgx.Rows, err error, row func(scan func(...any) error) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (b *backend) Take(ctx context.Context, name locks.Name, q *locks.Request) (g locks.Grant, ok bool, err error) {
	var fence, acquired, expires int64
	err = b.retry(ctx, func(ctx context.Context) error {
		err := b.pool.QueryRow(ctx, text.Take, relational.TakeArgs(name, q)...).Scan(&fence, &acquired, &expires)
		ok = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return relational.Taken(q, fence, acquired, expires), ok, err
}

var errRepeated = errors.New("postgres: the server has ended a connection, and may have released the lock before")

// giveSoon does not wait until the disk has it: if the server crashes just then, the lease
// is there again until it runs out, which is safe. It halves what taking and giving back
// a mutex costs. A row that was written before is on the disk, so is every fence.
var giveSoon = text.Give + " RETURNING set_config('synchronous_commit', 'off', true)"

func (b *backend) Give(ctx context.Context, name locks.Name, id string, data *string) (given bool, err error) {
	sql := giveSoon
	if data != nil {
		sql = text.Give // the data must not be lost
	}
	tries := 0
	err = b.retry(ctx, func(ctx context.Context) error {
		tries++
		tag, err := b.pool.Exec(ctx, sql, append(relational.Key(name), relational.Bytes(id), relational.OptionalBytes(data))...)
		given = tag.RowsAffected() > 0
		return err
	})
	if err == nil && !given && tries > 1 {
		err = locks.Unavailable(errRepeated)
	}
	return given, err
}

// channel is where a process listens.
func channel(client string) string { return "locks_" + client }

// hinted is the lock that a notification names.
func hinted(payload string) (locks.Name, bool) {
	at := slices.Index([]byte(payload), ':')
	if at < 0 {
		return locks.Name{}, false
	}
	tenant, err := hex.DecodeString(payload[:at])
	key, err2 := hex.DecodeString(payload[at+1:])
	return locks.Name{Tenant: string(tenant), Key: string(key)}, err == nil && err2 == nil
}
