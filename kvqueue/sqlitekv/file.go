package sqlitekv

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	sqlite "modernc.org/sqlite"
)

// A file is the connections of this process to a file.
type file struct {
	path string
	open driver.Connector

	writer *link // its user has the element of Store.writer, and so has that of disk
	disk   disk
	mu     sync.Mutex
	idle   []*link // for readers
	closed bool
}

// program is the application id in the header of a file: "kvq" and a 1; version is that of the
// tables.
const (
	program = 0x6b767101
	version = 1
)

// tables are those of a file. A row of kv is a key; log has, of each of the last revisions, the
// keys that it has changed; of one has a single row.
var tables = []string{
	"PRAGMA journal_mode = WAL",
	"CREATE TABLE kv (key BLOB NOT NULL PRIMARY KEY, rev INTEGER NOT NULL, session INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID",
	"CREATE INDEX kv_session ON kv (session) WHERE session > 0",
	"CREATE TABLE log (rev INTEGER PRIMARY KEY, changes BLOB NOT NULL)",
	"CREATE TABLE session (id INTEGER PRIMARY KEY AUTOINCREMENT, boot TEXT NOT NULL, ttl INTEGER NOT NULL, until INTEGER NOT NULL)",
	"CREATE INDEX session_until ON session (until)",
	"CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), rev INTEGER NOT NULL, trimmed INTEGER NOT NULL)",
	"INSERT INTO state VALUES (1, 1, 1)",
	fmt.Sprintf("PRAGMA application_id = %d", program),
	fmt.Sprintf("PRAGMA user_version = %d", version),
}

// openFile looks at the file of a path, and makes it if there is none. It has no connection yet.
func openFile(path string, noSync bool) (*file, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if err := refuseLog(path); err != nil {
			return nil, err
		}
		if err := makeFile(path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, unusable(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("sqlitekv: %s cannot be opened: it is a folder", path)
	case info.Size() == 0: // this package makes a file with all of its tables, or none
		return nil, fmt.Errorf("sqlitekv: %s is empty: its content was lost, or another program has begun it; restore it, or, to begin anew, remove it together with %s-wal and %s-shm: what is in them would be written over a new file", path, path, path)
	}
	f, err := connect(path, "NORMAL")
	if err == nil && !noSync {
		f.disk.sync = waitForDisk
	}
	return f, err
}

func connect(path, synchronous string) (*file, error) {
	connector, err := sqlite.NewConnector(fileURL(path) + "?_pragma=busy_timeout(0)&_pragma=synchronous(" + synchronous + ")")
	if err != nil {
		return nil, fmt.Errorf("sqlitekv: %w", err)
	}
	return &file{path: path, open: connector, disk: disk{turn: make(chan struct{}, 1)}}, nil
}

// fileURL returns the URI by which SQLite opens a path, whatever characters it has.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive of Windows
		path = "/" + path
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath()
}

// refuseLog refuses to make a file beside the log of one that is gone: SQLite would write what is in that over
// the new file. Where others make the file at this moment it is there by now.
func refuseLog(path string) error {
	info, err := os.Stat(path + "-wal")
	if err != nil || info.Size() == 0 {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("sqlitekv: %s is missing, and %s-wal is there, which has some of what it held: restore the file, or, to begin anew, remove %s-wal and %s-shm, too", path, path, path, path)
}

// makeFile makes a file with its tables under another name, and then gives it its own: nobody
// ever sees it half made. Another process may do so first.
func makeFile(path string) (err error) {
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return unusable(path, err)
	}
	name := made.Name()
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(name + suffix)
		}
	}()
	if err := made.Close(); err != nil {
		return unusable(path, err)
	}
	f, err := connect(name, "FULL")
	if err != nil {
		return err
	}
	f.path = path // in errors
	l, err := f.connect()
	if err != nil {
		return f.said(err)
	}
	for _, text := range tables {
		if err == nil {
			err = l.query(text, nil, func([]driver.Value) bool { return true })
		}
	}
	if err := errors.Join(err, l.close()); err != nil {
		return f.said(err)
	}
	return place(name, path)
}

// place gives a file that was made its name, unless there is one by now.
func place(name, path string) error {
	if err := os.Link(name, path); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil { // a file system without links
		if err := os.Rename(name, path); err != nil {
			return unusable(path, err)
		}
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return unusable(path, err)
	}
	_ = folder.Sync() // not every system can
	return folder.Close()
}

// check refuses a file that is not one of this package, and asks SQLite for its name, in which links are followed.
func (f *file) check(l *link) error {
	err := l.query("SELECT file FROM pragma_database_list WHERE name = 'main'", nil, func(row []driver.Value) bool {
		f.disk.name = fmt.Sprint(row[0]) + "-wal"
		return false
	})
	if err != nil {
		return err
	}
	id, _, err := l.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	there, _, err := l.number("PRAGMA user_version")
	switch {
	case err != nil:
		return err
	case id != program:
		return fmt.Errorf("sqlitekv: %s is a file of another program: name another", f.path)
	case there > version:
		return fmt.Errorf("sqlitekv: %s has format %s, and this program knows formats up to %d: use a newer program", f.path, strconv.FormatInt(there, 10), version)
	}
	return nil
}

func (f *file) connect() (*link, error) {
	c, err := f.open.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &link{conn: c, prepared: map[string]driver.Stmt{}}, nil
}

// maxIdle is how many connections for readers are kept.
const maxIdle = 4

// reader returns a connection that only reads.
func (f *file) reader() (*link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if n := len(f.idle); n > 0 {
		l := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return l, nil
	}
	return f.connect()
}

func (f *file) release(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) < maxIdle && !f.closed {
		f.idle = append(f.idle, l)
		return
	}
	_ = l.close()
}

func (f *file) close() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	err = f.disk.close() // before SQLite removes the log: Windows removes no file that is open
	for _, l := range append(f.idle, f.writer) {
		err = errors.Join(err, l.close())
	}
	f.idle = nil
	return f.said(err)
}
