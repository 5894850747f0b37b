package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/ambit-go/ambit/taskqueue"
)

// A file is a database of SQLite.
type file struct {
	sessions
	d      *dialect
	clock  func() moment
	closed atomic.Bool
	writer chan struct{} // has one element while somebody of this process writes: SQLite has no queue for writers
}

// sessions are how transactions reach a database: by connections of the store's own, or by the
// pool of a user.
type sessions interface {
	// once is one try of a transaction. It waits for a connection until ctx is done.
	once(ctx context.Context, m mode, f *file, do func(tx) error) error
	// alone reports that there is one connection: what reads waits for what writes.
	alone() bool
	close() error
}

func newFile(of sessions, prefix string, clock func() moment) *file {
	return &file{sessions: of, d: newDialect(false, prefix), clock: clock, writer: make(chan struct{}, 1)}
}

func (f *file) dialect() *dialect { return f.d }

func (f *file) close() error {
	f.writer <- struct{}{} // nobody writes any more
	defer func() { <-f.writer }()
	if f.closed.Swap(true) {
		return nil
	}
	return f.sessions.close()
}

// busyTime is how long a transaction waits at least that finds the file busy: about as long
// as most of others take. Then it waits for twice as long each time, up to 2 ms.
const busyTime = 125 * time.Microsecond

// transact is a method of database. A transaction gets no context that is ever done: it takes
// well below a millisecond, and a statement that is not interrupted has no unknown outcome.
func (f *file) transact(ctx context.Context, m mode, do func(tx) error) error {
	if m == writes || f.alone() {
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
		err := f.once(ctx, m, f, do)
		if !isBusy(err) && !errors.Is(err, errAgain) {
			return sqliteError(err)
		}
		if sleep(ctx, short+rand.N(short)); ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// isBusy reports whether an error says that somebody else has the file locked.
func isBusy(err error) bool {
	if err == nil {
		return false
	}
	var e *sqlite.Error
	if !errors.As(err, &e) { // of another driver: their errors have the text of SQLite
		return strings.Contains(err.Error(), "database is locked") || strings.Contains(err.Error(), "database table is locked")
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

// path returns where the file is, empty for a database in memory.
func (f *file) path(ctx context.Context) (path string, err error) {
	err = f.transact(ctx, reads, func(t tx) error {
		return t.run(row("SELECT coalesce(file, '') FROM pragma_database_list WHERE name = 'main'", nil, &path))
	})
	return path, err
}
