// Package sqlitestore is a locks.Store in a SQLite file, for the processes of one
// machine. It needs no server and no C compiler.
//
// The clock of the store is that of the machine, on Linux the one that counts from its start
// and that nobody sets. The file must be on a disk of the
// machine: SQLite does not lock files well over a network. A process that is stopped
// (SIGSTOP) in the middle of a step, which is some ten microseconds long, keeps the file
// locked until it goes on: nobody else is granted anything then, which is safe.
//
// Only one SQLite library may have the file open in a process: when a second one, of another
// driver, closes it, the system drops all locks that the process has on the file, also those of
// the first. A program that has its data and its locks in one file passes its pool to [New].
//
// Importing it has [locks.Open] know URLs such as "sqlite:locks.db".
package sqlitestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

func init() {
	locks.Register("sqlite", func(ctx context.Context, url string) (locks.Store, error) {
		return Open(ctx, strings.TrimPrefix(strings.TrimPrefix(url, "sqlite:"), "//"))
	})
}

// A Store is a locks.Store in a SQLite file.
type Store struct {
	relational.Store
	hub  relational.Hub
	file *file
	own  bool // the pool is the store's own
}

// Open opens the file of a path, and makes it and its tables if they are not there. The
// path ":memory:" means a database in memory, for this store alone. The store has a pool
// of its own, in WAL mode, with synchronous NORMAL: a lock that was granted right before
// the machine lost its power may be granted again. Close closes it.
func Open(ctx context.Context, path string) (*Store, error) {
	if path == "" {
		return nil, &locks.ValidationError{What: "store", Why: "the path of the SQLite file is empty: write sqlite:PATH"}
	}
	dsn, connections := path, 1
	if path != ":memory:" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, locks.Unavailable(err)
		}
		dsn, connections = fileURL(abs), 2 // one for the writer, one for readers
	}
	db, err := sql.Open("sqlite", dsn+"?"+settings)
	if err != nil {
		return nil, locks.Unavailable(err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	s, err := open(ctx, db, true, time.Now)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// New returns a store in a database that the user has opened, with any driver for SQLite
// of the same dialect, and makes its tables if they are not there. A pool of one
// connection is enough. Its settings stay as they are; WAL mode is recommended. While
// somebody waits for a lock, the store has a connection of its own to the same file, to
// see what other processes change, by the driver of the pool, which must know file: URLs for
// that; by others the store looks once a second. Close does not close the pool.
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	if db == nil {
		return nil, &locks.ValidationError{What: "store", Why: "the pool is nil: make it with sql.Open, and look at its error"}
	}
	return open(ctx, db, false, time.Now)
}

// settings are the parameters of the store's own connections. A busy file is not waited
// for by SQLite, whose steps are too long, but by the store.
const settings = "_txlock=immediate&_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"

// fileURL returns the URI by which SQLite opens a path, whatever characters it has.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive of Windows
		path = "/" + path
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath()
}

func open(ctx context.Context, db *sql.DB, own bool, wall func() time.Time) (*Store, error) {
	s := &Store{own: own}
	s.file = &file{
		db: db, immediate: own, writer: make(chan struct{}, 1), client: rand.Text(), hub: &s.hub,
	}
	s.file.Reads = relational.Reads{
		Prepared: &s.file.statements.Prepared, DB: db, Options: sql.TxOptions{ReadOnly: true}, Retry: s.file.retry,
		Time: func(context.Context, *sql.Tx) (int64, error) { return s.file.now(), nil },
	}
	s.Backend, s.Client, s.Hints = s.file, s.file.client, &s.hub
	if err := s.file.migrate(ctx); err != nil {
		return nil, err
	}
	if err := s.file.setClock(ctx, wall); err != nil {
		return nil, err
	}
	if err := s.file.prepare(ctx); err != nil {
		return nil, err
	}
	path, err := s.file.path(ctx)
	if err != nil {
		return nil, err
	}
	if path != "" {
		s.hub.Start = func() func() { return watch(s.file, path) }
	}
	return s, nil
}

// Listen tells of what this process changes at once, and of what other processes change
// within some milliseconds.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) { return s.hub.Listen(name) }

// Traits says that SQLite can do everything.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "sqlite", MinLease: 500 * time.Millisecond, Hints: true}
}

// Close has every later step fail. It closes the pool if the store has opened it.
func (s *Store) Close() error {
	s.hub.Close()
	s.file.closed.Store(true)
	s.StopTidying()
	err := s.file.statements.Close()
	if s.own {
		err = errors.Join(err, s.file.db.Close())
	}
	return err
}

// busy says whether an error says that somebody else has the file locked.
func busy(err error) bool {
	code := code(err)
	return code == 5 || code == 6 // SQLITE_BUSY, SQLITE_LOCKED
}

// never are what SQLite says to what it will not do however often it is asked: SQLITE_PERM,
// SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_AUTH, SQLITE_NOTADB.
var never = []int{3, 8, 14, 23, 26}

// code is the primary code of an error of SQLite, 0 if it is none.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	if err != nil { // of another driver, whose type is not known here
		for text, code := range said {
			if strings.Contains(err.Error(), text) {
				return code
			}
		}
	}
	return 0
}

// said are the texts that SQLite has for codes.
var said = map[string]int{
	"access permission denied": 3, "database is locked": 5, "database table is locked": 6, "attempt to write a readonly database": 8,
	"unable to open database file": 14, "authorization denied": 23, "file is not a database": 26,
}

// failure is the error of a step that could not be done.
func failure(err error) error {
	if err == nil || errors.Is(err, locks.ErrValidation) || errors.Is(err, locks.ErrUnavailable) {
		return err
	}
	if slices.Contains(never, code(err)) {
		return locks.Invalid(fmt.Errorf("sqlite: the file cannot be opened or written: %w", err))
	}
	return locks.Unavailable(fmt.Errorf("sqlite: %w", err))
}
