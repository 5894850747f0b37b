package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/ambit-go/ambit/taskqueue"
)

// A file is a database of SQLite.
type file struct {
	db        *sql.DB
	d         *dialect
	own       bool // the pool is the store's own: its transactions begin as writers
	clock     func() moment
	closed    atomic.Bool
	prepared  sync.Map      // statement -> *sql.Stmt
	preparing sync.Mutex    // each statement is prepared once
	writer    chan struct{} // has one element while somebody of this process writes: SQLite has no queue for writers
}

// settings are the parameters of the store's own connections. SQLite itself does not wait for
// a file that is busy, because its steps are too long. WAL with synchronous FULL has every
// transaction on the disk when it is told.
const settings = "_txlock=immediate&_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// connections are how many a store opens to its file: one for the writer, the others for
// readers.
const connections = 4

// openFile opens the pool of a path. Several processes may begin at once, and the first of
// them switches the file to WAL, for which it has to be alone.
func openFile(path string) (*sql.DB, error) {
	dsn, n := path, 1
	if path != memory {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		dsn, n = fileURL(abs), connections
	}
	db, err := sql.Open("sqlite", dsn+"?"+settings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// memory is the path of a database that has no file.
const memory = ":memory:"

// fileURL returns the URI by which SQLite opens a path, whatever characters it has.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive of Windows
		path = "/" + path
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath()
}

func newFile(db *sql.DB, own bool, prefix string, clock func() moment) *file {
	return &file{db: db, own: own, d: newDialect(false, prefix), clock: clock, writer: make(chan struct{}, 1)}
}

func (f *file) dialect() *dialect { return f.d }

func (f *file) close() error {
	f.closed.Store(true)
	f.writer <- struct{}{} // nobody writes any more
	defer func() { <-f.writer }()
	var err error
	f.prepared.Range(func(_, s any) bool { err = errors.Join(err, s.(*sql.Stmt).Close()); return true })
	if f.own {
		err = errors.Join(err, f.db.Close())
	}
	return err
}

// busyTime is how long a transaction waits at least that finds the file busy: about as long
// as most of others take. Then it waits for twice as long each time, up to 2 ms.
const busyTime = 125 * time.Microsecond

// transact is a method of database. A transaction gets no context that is ever done: it takes
// well below a millisecond, and a statement that is not interrupted has no unknown outcome.
func (f *file) transact(ctx context.Context, m mode, do func(tx) error) error {
	if m == writes {
		select {
		case f.writer <- struct{}{}:
			defer func() { <-f.writer }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for short := busyTime; ; short = min(2*short, time.Millisecond) {
		switch {
		case f.closed.Load():
			return taskqueue.ErrClosed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		err := f.once(m, do)
		if !isBusy(err) && !errors.Is(err, errAgain) {
			return sqliteError(err)
		}
		pause := time.NewTimer(short + rand.N(short))
		select {
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}

func (f *file) once(m mode, do func(tx) error) error {
	begun, err := f.db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: m == reads})
	if err != nil {
		return err
	}
	defer func() { _ = begun.Rollback() }() // after a commit it does nothing
	t := &fileTx{f: f, tx: begun}
	if m == writes && !f.own {
		// The pool of a user begins as a reader, as a rule: a first statement that writes has the
		// file locked.
		if _, err := begun.Exec(f.d.read("UPDATE tq_schema SET version = version WHERE 0")); err != nil && !strings.Contains(err.Error(), "no such table") {
			return err
		}
	}
	if err := do(t); err != nil {
		return err
	}
	err = begun.Commit()
	if len(t.fresh) > 0 && err == nil {
		f.prepare(t.fresh)
	}
	return err
}

// isBusy reports whether an error says that somebody else has the file locked.
func isBusy(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == 5 || code == 6 // SQLITE_BUSY, SQLITE_LOCKED
}

// sqliteError names the database in an error of it.
func sqliteError(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return fmt.Errorf("taskqueue: sqlite: %w", err)
	}
	return err
}

// prepare has statements prepared for all connections, outside of any transaction: a pool of
// one connection has none for it before.
func (f *file) prepare(texts []string) {
	f.preparing.Lock()
	defer f.preparing.Unlock()
	for _, text := range texts {
		if _, ok := f.prepared.Load(text); ok || f.closed.Load() {
			continue
		}
		if s, err := f.db.Prepare(text); err == nil { // else it is prepared each time
			f.prepared.Store(text, s)
		}
	}
}

type fileTx struct {
	f  *file
	tx *sql.Tx
	// of are the statements as the transaction uses them, fresh those that nobody has used before.
	of    map[string]*sql.Stmt
	fresh []string
}

// prepared returns a statement of the transaction.
func (t *fileTx) prepared(text string) (*sql.Stmt, error) {
	text = t.f.d.read(text)
	if s := t.of[text]; s != nil {
		return s, nil
	}
	var s *sql.Stmt
	if known, ok := t.f.prepared.Load(text); ok {
		s = t.tx.Stmt(known.(*sql.Stmt))
	} else {
		var err error
		if s, err = t.tx.Prepare(text); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(text, "CREATE") {
			t.fresh = append(t.fresh, text)
		}
	}
	if t.of == nil {
		t.of = map[string]*sql.Stmt{}
	}
	t.of[text] = s
	return s, nil
}

func (t *fileTx) end(all ...query) error { return t.run(all...) }

func (t *fileTx) run(all ...query) error {
	for i := range all {
		q := &all[i]
		if q.empty() {
			continue
		}
		if q.clock != nil {
			*q.clock = t.f.clock()
			continue
		}
		if err := t.one(q); err != nil {
			return err
		}
	}
	return nil
}

func (t *fileTx) one(q *query) error {
	if q.bulk == nil {
		return t.statementOnce(q, q.text, q.args, -1)
	}
	for i, args := range q.rows {
		if err := t.statementOnce(q, q.bulk.sqlite, args, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *fileTx) statementOnce(q *query, text string, args []any, at int) error {
	s, err := t.prepared(text)
	if err != nil {
		return err
	}
	if q.each == nil {
		result, err := s.Exec(args...)
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
	rows, err := s.Query(args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := q.each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// path returns where the file is, empty for a database in memory.
func (f *file) path(ctx context.Context) (path string, err error) {
	err = f.transact(ctx, reads, func(t tx) error {
		return t.run(row("SELECT coalesce(file, '') FROM pragma_database_list WHERE name = 'main'", nil, &path))
	})
	return path, err
}
