package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/taskqueue"
)

// A server is a database of PostgreSQL.
type server struct {
	pool   *pgxpool.Pool
	d      *dialect
	own    bool // the pool is the store's own
	closed atomic.Bool
}

// The isolation is set by each transaction: that of the database may be another.
var begins = map[mode]string{
	reads:  "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
	writes: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
}

// clockText reads the clock of the server. A process that is stopped within a transaction has
// rows locked: the server ends its transaction after two seconds.
const clockText = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, set_config('idle_in_transaction_session_timeout', '2000', true) || " + planText

// planText has the server plan each statement once for a connection: it would do that each time for statements about few
// rows, because it guesses that there are ten of them as a rule. The plan lasts while the tables grow, so it goes by
// an index although there are no tasks yet.
const planText = "set_config('plan_cache_mode', 'force_generic_plan', true) || set_config('enable_seqscan', 'off', true) || set_config('jit', 'off', true)"

// briefClockText has the transaction wait for locks of others for 100 ms at most, each time.
const briefClockText = clockText + " || set_config('lock_timeout', '100', true)"

// foreignClockText is that in a transaction of a user.
const foreignClockText = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

func (s *server) dialect() *dialect { return s.d }

func (s *server) close() error {
	if !s.closed.Swap(true) && s.own {
		s.pool.Close()
	}
	return nil
}

// transact is a method of database. It repeats what the server has given up for the sake of
// another transaction, or because this process was stopped within it, and what was not sent because the
// server had ended a connection of the pool before.
func (s *server) transact(ctx context.Context, m mode, do func(tx) error) error {
	for stale := 0; ; {
		if s.closed.Load() {
			return taskqueue.ErrClosed
		}
		sent, err := s.once(ctx, m, do)
		var refused *pgconn.PgError
		unknown := sent && !rolledBack(err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errAgain), errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01"): // serialization, deadlock
			sleep(ctx, time.Millisecond+rand.N(4*time.Millisecond))
		case (pgconn.SafeToRetry(err) || refused != nil && (refused.Code == idled || refused.Code == "57P01" && !sent)) && stale < 100: // one for each connection of a large pool
			stale++
		default:
			return postgresError(ctx, err, unknown)
		}
		if ctx.Err() != nil {
			return postgresError(ctx, err, unknown)
		}
	}
}

// idled is the code of an error with which the server ends a transaction that has sent nothing for two seconds: see
// clockText. A commit that comes later is not carried out.
const idled = "25P03"

// rolledBack reports whether the server says that it has not carried out what it was sent. With FATAL
// or PANIC it says why it ends the connection, maybe after the commit.
func rolledBack(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.SeverityUnlocalized == "ERROR" || refused.Severity == "ERROR" || refused.Code == idled)
}

// isLocked reports whether a brief transaction has waited long enough for a lock of another.
func isLocked(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "55P03"
}

// An unknownError is the error of a transaction that may have been carried out.
type unknownError struct{ error }

func (e unknownError) Unwrap() error { return e.error }

func postgresError(ctx context.Context, err error, unknown bool) error {
	var known *pgconn.PgError
	if errors.As(err, &known) && (known.Code == "42P05" || known.Code == "26000") {
		err = fmt.Errorf("a pooler in transaction mode is in between, add default_query_exec_mode=exec to the URL: %w", err)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("taskqueue: postgres: %w: %w", cause, err)
	} else if errors.As(err, &known) || unknown {
		err = fmt.Errorf("taskqueue: postgres: %w", err)
	}
	if unknown {
		return unknownError{err}
	}
	return err
}

// once is one try. It reports whether a commit was sent. A connection that is left within a
// transaction is closed by the pool.
func (s *server) once(ctx context.Context, m mode, do func(tx) error) (sent bool, err error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.Release()
	t := &serverTx{s: s, ctx: ctx, sender: c, begin: begins[m]}
	err = do(t)
	if err == nil && !t.ended {
		err = t.end()
	}
	if t.done { // whatever came behind the answer
		return true, nil
	}
	if err != nil && !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return t.ended, err
}

// A sender is what sends statements: a connection of the pool, or a transaction of a user.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

type serverTx struct {
	s     *server
	ctx   context.Context
	begin string // to be sent before the first statement; empty: it was
	ended bool   // the commit was sent
	done  bool   // and answered
	// foreign: it is a transaction of a user, whose settings stay as they are.
	foreign bool
	sender
}

func (t *serverTx) run(all ...query) error { return t.send(all, false) }

func (t *serverTx) end(all ...query) error { return t.send(all, true) }

// send sends statements in one message.
func (t *serverTx) send(all []query, last bool) error {
	batch := &pgx.Batch{}
	if t.begin != "" {
		if len(all) == 0 && last {
			t.ended = true
			return nil
		}
		batch.Queue(t.begin)
	}
	for i := range all {
		if q := &all[i]; !q.empty() {
			t.queue(batch, q)
		}
	}
	if last {
		batch.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error { t.done = tag.String() == "COMMIT"; return nil })
	}
	if batch.Len() == 0 {
		return nil
	}
	t.begin, t.ended = "", t.ended || last
	return t.SendBatch(t.ctx, batch).Close()
}

// queue adds a statement to a message, and says what becomes of its results.
func (t *serverTx) queue(batch *pgx.Batch, q *query) {
	if q.clock != nil {
		text, into := foreignClockText, []any{&q.clock.wall}
		if !t.foreign {
			text, into = clockText, append(into, new(string))
		}
		if q.brief && !t.foreign {
			text = briefClockText
		}
		batch.Queue(text).QueryRow(func(r pgx.Row) error {
			err := r.Scan(into...)
			q.clock.steady = q.clock.wall
			return err
		})
		return
	}
	text, args := q.text, q.args
	if q.bulk != nil {
		text, args = q.bulk.postgres, append(q.bulk.arrays(q.rows), q.args...)
	}
	queued := batch.Queue(t.s.d.read(text), args...)
	if each := q.returned(); each != nil {
		queued.Query(func(rows pgx.Rows) error { return scanAll(rows, each) })
	} else if q.affected != nil {
		queued.Exec(func(tag pgconn.CommandTag) error { *q.affected += tag.RowsAffected(); return nil })
	}
}

// returned is what reads a row that a statement returns: an insertion returns the first two columns of what was added,
// and no two rows have those.
func (q *query) returned() func(scanner) error {
	if q.added == nil {
		return q.each
	}
	at := make(map[[2]any]int, len(q.rows))
	for i, r := range q.rows {
		at[[2]any{r[0], r[1]}] = i
	}
	return each2(func(first, second string) { q.added(at[[2]any{first, second}]) })
}
