// Package sqlstore is a taskqueue.Store in a database: a SQLite file, which needs no server
// and which any number of processes of one machine share, or PostgreSQL.
//
//	store, err := sqlstore.OpenFile(ctx, "tasks.db")
//	store, err := sqlstore.New(ctx, pool) // a *pgxpool.Pool, or a *sql.DB of SQLite
//
// # SQLite
//
// The file is in WAL mode, with synchronous FULL: every task that was acknowledged is on the
// disk. It must be on a disk of the machine, because SQLite does not lock files well over a
// network. A process that is stopped (SIGSTOP) in the middle of a step, which is well below a
// millisecond long, has the file locked until it goes on: nobody else gets on then, and no
// run is counted as crashed because of that.
//
// Times at which tasks are due are by the wall clock; what is ready stays so when that is put
// back. Leases are by the time since the machine was started, where the system tells it
// (Linux), so that nobody loses one when the clock is put forward or back.
//
// # PostgreSQL
//
// All times are by the clock of the server, version 12 or newer. The tables are made in the
// first schema of the search path; [Prefix] is what their names begin with. Who makes them
// needs the right to create tables in that schema; who uses them needs to select, insert,
// update and delete in all of them, and to select and update the sequence. Transactions are short, and one
// that a stopped process leaves open is ended by the server after two seconds.
//
// Behind a pooler in transaction mode, such as PgBouncer, add default_query_exec_mode=exec to
// the URL. Notices do not come through it: the store sends itself one, and where that does not
// come idle workers look ten times a second, and tell the observer so.
package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

func init() {
	taskqueue.Register("sqlite", func(ctx context.Context, url string) (taskqueue.Store, error) {
		return OpenFile(ctx, strings.TrimPrefix(strings.TrimPrefix(url, "sqlite:"), "//"))
	})
	for _, scheme := range []string{"postgres", "postgresql"} {
		taskqueue.Register(scheme, func(ctx context.Context, url string) (taskqueue.Store, error) { return openURL(ctx, url) })
	}
}

// An Option changes a store.
type Option func(*options)

type options struct{ prefix string }

// Prefix is what the names of all tables begin with: letters, digits and underscores. Stores
// of different prefixes have nothing to do with each other. Defaults to "tq_".
func Prefix(p string) Option { return func(o *options) { o.prefix = p } }

// A Store is a taskqueue.Store in a database.
type Store struct {
	db       database
	postgres bool
	memory   bool   // no other process can see it
	client   string // names this process in the database
	install  string // names the database
	hints    hints
	fronts   fronts
	enqueues enqueues
}

var (
	_ taskqueue.Store   = (*Store)(nil)
	_ taskqueue.Auditor = (*Store)(nil)
)

// OpenFile opens the store in a SQLite file, and makes the file and its tables if they are not
// there. The path ":memory:" is a database in memory, for this store alone. Any number of
// processes may open the same file. Close closes it.
func OpenFile(ctx context.Context, path string, opts ...Option) (*Store, error) {
	if path == "" {
		return nil, &taskqueue.InvalidError{What: "store", Why: "the path of the SQLite file is empty: write it as sqlite:tasks.db"}
	}
	db, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("taskqueue: %w", err)
	}
	s, err := fileStore(ctx, db, opts)
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	return s, nil
}

// New returns the store in a database that the user has opened: PostgreSQL by a pool of pgx,
// or SQLite by a *sql.DB of any driver of its dialect. It makes the tables if they are not
// there. A pool of one connection is enough. For SQLite WAL mode is recommended; whether a
// task that was acknowledged is on the disk is for the settings of the pool to say. Close does
// not close db.
func New[DB *pgxpool.Pool | *sql.DB](ctx context.Context, db DB, opts ...Option) (*Store, error) {
	if db == nil {
		return nil, &taskqueue.InvalidError{What: "store", Why: fmt.Sprintf("the %T is nil: open the database first", db)}
	}
	switch db := any(db).(type) {
	case *pgxpool.Pool:
		return serverStore(ctx, db, false, opts)
	case *sql.DB:
		return fileStore(ctx, &pool{db: db}, opts)
	}
	panic("taskqueue: a database of no known type")
}

// openURL opens the store in a database of PostgreSQL, with a pool of its own.
func openURL(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil { // it may show what is in the URL
		return nil, &taskqueue.InvalidError{What: "store", Why: "the URL of PostgreSQL is not valid: write postgres://USER:PASSWORD@HOST:PORT/DATABASE"}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("taskqueue: postgres: %w", err)
	}
	s, err := serverStore(ctx, pool, true, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

func newStore(opts []Option) (*Store, *options, error) {
	o := &options{prefix: "tq_"}
	for _, opt := range opts {
		if opt == nil {
			return nil, nil, &taskqueue.InvalidError{What: "Option", Why: "it is nil: leave it out"}
		}
		opt(o)
	}
	if !prefixes.MatchString(o.prefix) {
		return nil, nil, &taskqueue.InvalidError{What: "Prefix", Why: fmt.Sprintf("%q is no name of a table: use lower-case letters, digits and underscores", o.prefix)}
	}
	return &Store{client: rand.Text()[:12], hints: hints{fault: make(chan error, 1)}}, o, nil
}

func fileStore(ctx context.Context, db sessions, opts []Option) (*Store, error) {
	s, o, err := newStore(opts)
	if err != nil {
		return nil, err
	}
	f := newFile(db, o.prefix, nil)
	s.db = f
	path, err := f.path(ctx)
	if errors.As(err, new(*pgconn.PgError)) {
		return nil, &taskqueue.InvalidError{What: "store", Why: "the *sql.DB is of PostgreSQL, not of SQLite: pass a *pgxpool.Pool"}
	}
	if err != nil {
		return nil, err
	}
	if s.memory = path == ""; s.memory {
		f.clock = programTime
	} else {
		f.clock = machineTime()
		s.hints.listen = func(ctx context.Context) { s.watch(ctx, f, path) }
	}
	return s, s.begin(ctx)
}

func serverStore(ctx context.Context, pool *pgxpool.Pool, own bool, opts []Option) (*Store, error) {
	s, o, err := newStore(opts)
	if err != nil {
		return nil, err
	}
	s.postgres = true
	db := &server{pool: pool, d: newDialect(true, o.prefix), own: own}
	s.db = db
	s.hints.listen = func(ctx context.Context) { listen(ctx, s, db) }
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, s.raiseToken(ctx)
}

// begin makes the tables.
func (s *Store) begin(ctx context.Context) (err error) {
	s.enqueues.init(s)
	s.install, err = migrate(ctx, s.db, rand.Text())
	return err
}

// raiseToken has the sequence of tokens be at least the time: a database that was restored, or
// copied, gives no token again that a worker may have, unless more than 1,000 claims a second had put
// its sequence ahead of the clock. A sequence that is ahead stays as it is:
// claims draw from it meanwhile. One that is behind jumps over what they can draw until it is set.
func (s *Store) raiseToken(ctx context.Context) error {
	return s.db.transact(ctx, writes, func(t tx) error {
		var now moment
		if err := t.run(statement("SELECT pg_advisory_xact_lock(hashtext('tq_token'))"), query{clock: &now}); err != nil {
			return err
		}
		return t.end(statement("SELECT setval('tq_token', $1::bigint + 10000000) FROM tq_token WHERE last_value < $1", now.wall))
	})
}

// Close ends the use of the store. Enqueues that are being carried out are waited for, and
// whoever waits for a hint returns [taskqueue.ErrClosed].
func (s *Store) Close() error {
	s.hints.close()
	s.enqueues.idle()
	return s.db.close()
}

// programTime is the time of the program, which may be in a bubble of testing/synctest.
func programTime() moment {
	now := clock.Now().UnixMicro()
	return moment{wall: now, steady: now}
}
