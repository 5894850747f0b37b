package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	sqlite "modernc.org/sqlite"
)

// settings are the parameters of the store's own connections. SQLite itself does not wait for
// a file that is busy, because its steps are too long. WAL with synchronous FULL has every
// transaction on the disk when it is told.
const settings = "_txlock=immediate&_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

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

// links are the connections of the store's own. They have no goroutines, so a store in memory
// may be forgotten, in a bubble of testing/synctest, too.
type links struct {
	open   driver.Connector
	single bool // there is only the writer: a database in memory is that of a connection

	writer *link
	mu     sync.Mutex
	idle   []*link // for readers
	closed bool
}

// openFile opens the file of a path.
func openFile(path string) (*links, error) {
	dsn := path
	if path != memory {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Dir(abs)); err != nil {
			return nil, err // SQLite does not say what is wrong
		}
		dsn = fileURL(abs)
	}
	connector, err := sqlite.NewConnector(dsn + "?" + settings)
	return &links{open: connector, single: path == memory}, err
}

func (l *links) alone() bool { return l.single }

func (l *links) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.idle
	if l.writer != nil {
		all = append(all, l.writer)
	}
	var err error
	for _, one := range all {
		err = errors.Join(err, one.close())
	}
	l.idle, l.writer, l.closed = nil, nil, true
	return err
}

func (l *links) connect() (*link, error) {
	c, err := l.open.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &link{conn: c, prepared: map[string]driver.Stmt{}}, nil
}

// take returns a connection for a transaction: that of the writer, or one for a reader.
func (l *links) take(m mode) (one *link, err error) {
	l.mu.Lock()
	if m == writes || l.single {
		defer l.mu.Unlock()
		if l.writer == nil {
			l.writer, err = l.connect()
		}
		return l.writer, err
	}
	if n := len(l.idle); n > 0 {
		one, l.idle = l.idle[n-1], l.idle[:n-1]
	}
	l.mu.Unlock()
	if one == nil {
		one, err = l.connect()
	}
	return one, err
}

// maxIdle is how many connections for readers are kept.
const maxIdle = 4

func (l *links) give(one *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one == l.writer {
		return
	}
	if len(l.idle) < maxIdle && !l.closed {
		l.idle = append(l.idle, one)
		return
	}
	_ = one.close()
}

var begin = map[mode]string{reads: "BEGIN", writes: "BEGIN IMMEDIATE"}

func (l *links) once(_ context.Context, m mode, f *file, do func(tx) error) error {
	one, err := l.take(m)
	if err != nil {
		return err
	}
	defer l.give(one)
	if err := one.exec(begin[m]); err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also if do panics
			_ = one.exec("ROLLBACK") // after some errors of a disk SQLite has done so
		}
	}()
	if err := do(&linkTx{f, one}); err != nil {
		return err
	}
	err = one.exec("COMMIT")
	if done = err == nil; !done && !isBusy(err) {
		return unknownError{err} // a part of it that is on the disk may be the whole
	}
	return err
}

// A link is one connection. One goroutine at a time uses it.
type link struct {
	conn     driver.Conn
	prepared map[string]driver.Stmt
}

func (l *link) close() (err error) {
	for _, s := range l.prepared {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, l.conn.Close())
}

func (l *link) statement(text string) (driver.Stmt, error) {
	if s := l.prepared[text]; s != nil {
		return s, nil
	}
	s, err := l.conn.Prepare(text)
	if err == nil {
		l.prepared[text] = s
	}
	return s, err
}

func (l *link) exec(text string) error {
	s, err := l.statement(text)
	if err == nil {
		_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	}
	return err
}

// A linkTx is a transaction on a link.
type linkTx struct {
	f *file
	l *link
}

func (t *linkTx) end(all ...query) error { return t.run(all...) }

func (t *linkTx) run(all ...query) error { return runEach(all, t.f.clock, t.once) }

func (t *linkTx) once(q *query, text string, args []any, at int) error {
	s, err := t.l.statement(t.f.d.read(text))
	if err != nil {
		return err
	}
	values := make([]driver.NamedValue, len(args))
	for i, v := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	if q.each == nil {
		result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), values)
		return q.told(result, err, at)
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), values)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	found := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(found); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := q.each(func(into ...any) error { return assign(into, found) }); err != nil {
			return err
		}
	}
}

// assign scans a row: the types are those that this package has.
func assign(into []any, row []driver.Value) error {
	if len(into) != len(row) {
		return fmt.Errorf("taskqueue: a row has %d columns, not %d", len(row), len(into))
	}
	for i, v := range row {
		ok := true
		switch to := into[i].(type) {
		case *int64:
			*to, ok = v.(int64)
		case *int:
			var n int64
			n, ok = v.(int64)
			*to = int(n)
		case *string:
			*to, ok = v.(string)
		case *[]byte:
			*to, ok = v.([]byte)
		case *float64:
			*to, ok = v.(float64)
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("taskqueue: column %d of a row is a %T, not a %T", i, v, into[i])
		}
	}
	return nil
}
