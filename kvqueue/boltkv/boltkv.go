// Package boltkv is a store of package kvqueue in a file, for the processes of one machine:
// no server is needed. What was acknowledged is on the disk.
//
// One process has the file open, by [Open]. It listens on a socket beside the file, whose
// name has .sock behind it and which only the same user may use; through it other processes
// use the store, by [Dial]. [Share] is for those that do not mind which of the two they do.
package boltkv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/internal/boltfile"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/local"
)

// ErrTaken says that another process has the file.
var ErrTaken = errors.New("boltkv: another process has the file: use Dial, which goes through that process, or Share; or end it")

// ErrGone says that the process that has the file cannot be reached any more.
var ErrGone = errors.New("boltkv: the process that has the file has gone")

// limits are those of etcd, so that what works on one machine works on many. The files of
// bbolt could hold more.
var limits = kvqueue.Limits{Guards: 128, Writes: 128, Bytes: 3 << 19, MinTTL: 500 * time.Millisecond}

// A Store is a [kvqueue.KV] in a file. It is made by [Open].
type Store struct {
	*local.Store
	tree   *tree
	server *server // nil: nobody else is served

	closing sync.Once
	closed  error // what came of closing; set within closing
}

var _ kvqueue.KV = (*Store)(nil)

type settings struct{ noSync, noSocket bool }

// An Option changes how a file is opened.
type Option func(*settings)

// NoSync does not wait until the disk has what was written: what was acknowledged last may
// be lost, and the file damaged, when the machine stops. The end of the process alone loses
// nothing. It is for data that may be made again.
func NoSync() Option { return func(s *settings) { s.noSync = true } }

// NoSocket serves no other process: there is no socket beside the file.
func NoSocket() Option { return func(s *settings) { s.noSocket = true } }

// Open opens the store in the file, which is made if there is none; its folder must be
// there. The whole file is looked through first. Commits of any number of goroutines and of
// other processes share transactions of the file, and with them the waits for the disk.
//
// It fails with [ErrTaken] if another process has the file, and with an error that says
// what to do if the file is damaged, or one of another program, or written by a newer
// version, or cannot be read and written. Sessions of an earlier process have ended.
func Open(path string, options ...Option) (*Store, error) {
	return open(path, new(boltfile.Checked), options...)
}

// open is Open, for one who may have looked through the file already.
func open(path string, checked *boltfile.Checked, options ...Option) (*Store, error) {
	var set settings
	for _, o := range options {
		o(&set)
	}
	path, err := canonical(path)
	if err != nil {
		return nil, err
	}
	bolt, file, err := openFile(path, set.noSync, checked)
	if err != nil {
		return nil, err
	}
	s := &Store{tree: &tree{bolt: bolt, file: file}}
	if s.Store, err = local.New(s.tree, limits); err == nil && !set.noSocket {
		if s.server, err = serve(path+".sock", s.Store); err != nil {
			err = fmt.Errorf("boltkv: other processes could not use %s: %w", path, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.tree.close())
	}
	return s, nil
}

// canonical is the one path under which all processes know a file, whatever folder they
// are in, and whatever link they follow: the socket is beside it.
func canonical(path string) (string, error) {
	if path == "" {
		return "", &kvqueue.InvalidError{What: "file", Why: "it has no name: say something such as queue.db"}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("boltkv: %w", err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(folder, filepath.Base(path)), nil
	}
	return path, nil // opening it says what is wrong
}

// Close ends the use of the file, in this process and in those that are served: their calls
// fail with [ErrGone]. Sessions end. It may be called any number of times.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.Store.Close()
		if s.server != nil {
			s.closed = s.server.close()
		}
		s.closed = errors.Join(s.closed, s.tree.close())
	})
	return s.closed
}

// A tree is a [local.Tree] in a file.
type tree struct {
	bolt *bbolt.DB
	file *os.File // of bolt

	mu     sync.Mutex
	failed error // why the file cannot be used any more; set once
	torn   bool  // bbolt has panicked: it may have locked itself
}

func (t *tree) View(f func(local.Reader) error) (err error) {
	if err := t.broken(nil); err != nil {
		return err
	}
	err = t.guarded(func() error {
		return t.bolt.View(func(tx *bbolt.Tx) error { return f(boltTx{tx.Bucket(bucket)}) })
	})
	return t.outcome(err, false)
}

func (t *tree) Update(f func(local.Writer) error) error {
	if err := t.broken(nil); err != nil {
		return err
	}
	var own error
	err := t.guarded(func() error {
		return t.bolt.Update(func(tx *bbolt.Tx) error {
			own = f(boltTx{tx.Bucket(bucket)})
			return own
		})
	})
	if err != nil && err == own {
		return err
	}
	return t.outcome(err, true)
}

// guarded has what bbolt panics with be an error.
func (t *tree) guarded(f func() error) (err error) {
	defer boltfile.Guard(&err, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.torn = true
	})()
	return f()
}

// broken returns why the file cannot be used any more: err, if it is the first reason.
func (t *tree) broken(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = err
	}
	return t.failed
}

// close waits for the transactions that are open.
func (t *tree) close() error {
	t.mu.Lock()
	torn := t.torn
	if t.failed == nil {
		t.failed = errClosed
	}
	t.mu.Unlock()
	if torn { // its mapping stays until the program ends, but others may have the file
		boltfile.Unlock(t.file)
		return nil
	}
	return t.bolt.Close()
}

var errClosed = fmt.Errorf("%w: the file", kvqueue.ErrClosed)

// boltTx is a transaction of the file.
type boltTx struct{ b *bbolt.Bucket }

func (t boltTx) Get(key []byte) []byte       { return t.b.Get(key) }
func (t boltTx) Put(key, value []byte) error { return t.b.Put(key, value) }
func (t boltTx) Delete(key []byte) error     { return t.b.Delete(key) }

func (t boltTx) Ascend(begin, end []byte, f func(key, value []byte) bool) {
	c := t.b.Cursor()
	for k, v := c.Seek(begin); k != nil && string(k) < string(end) && f(k, v); k, v = c.Next() {
	}
}
