// Package filestore is a taskqueue.Store in a file, for one machine: no server is
// needed. What was acknowledged is on the disk.
//
// One process has the file open. Others that open it use it through that process, by
// a socket beside the file (its name with .sock behind), which only the same user
// may use. When the process ends another takes over.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
	"github.com/ambit-go/ambit/taskqueue/internal/remote"
)

var (
	bucket    = []byte("taskqueue")
	about     = []byte("about")
	formatKey = []byte("format")
)

// format is the version of what is stored.
const format = "1"

func init() {
	taskqueue.Register("file", func(_ context.Context, url string) (taskqueue.Store, error) {
		return Open(strings.TrimPrefix(strings.TrimPrefix(url, "file:"), "//"))
	})
}

const (
	// lockPatience is how long the lock of the file is waited for.
	lockPatience = 50 * time.Millisecond
	// openPatience is how long the process that has the file is waited for.
	openPatience = 2 * time.Second
)

// Open opens the store in the file, which is made if there is none. It fails if the
// file is damaged, if a newer version wrote it, or if another process has it and
// cannot be reached.
func Open(path string) (taskqueue.Store, error) {
	s := &store{path: path}
	if _, err := s.current(); err != nil {
		return nil, err
	}
	return s, nil
}

// A store is the file, or the process that has it.
type store struct {
	path string

	mu     sync.Mutex
	now    taskqueue.Store // nil: to be opened
	server *remote.Server  // if we have the file
	closed bool

	breaking sync.WaitGroup // calls of broken
}

// current returns where the tasks are now.
func (s *store) current() (taskqueue.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, taskqueue.ErrClosed
	case s.now != nil:
		return s.now, nil
	}
	for begin := clock.Now(); ; time.Sleep(lockPatience / 5) {
		err := s.openLocked()
		if err == nil {
			return s.now, nil
		}
		// Whoever has the file may be opening it, or closing it, just now.
		if !errors.Is(err, errSilent) || clock.Now().Sub(begin) > openPatience {
			return nil, err
		}
	}
}

// errSilent: a process has the file, and nobody answers at its socket.
var errSilent = errors.New("it does not answer at its socket")

// openLocked opens the file, or reaches the process that has it.
func (s *store) openLocked() error {
	own, err := openFile(s.path, func(st taskqueue.Store) { s.breaking.Add(1); go s.broken(st) })
	if err == nil {
		if s.server, err = remote.Listen(s.path+".sock", own); err != nil {
			return errors.Join(fmt.Errorf("taskqueue: other processes could not use %s: %w", s.path, err), own.Close())
		}
		s.now = own
		return nil
	}
	if !errors.Is(err, bolterrors.ErrTimeout) {
		return err
	}
	other, err := remote.Dial(s.path + ".sock")
	if err != nil {
		return fmt.Errorf("taskqueue: another process has %s: %w: %w", s.path, errSilent, err)
	}
	s.now = other
	return nil
}

// broken closes the file, which could not be written: what is in memory is ahead of
// it. The next call opens it again, here or in another process, and finds what was
// acknowledged. Those who have sent steps hear that the connection has ended.
func (s *store) broken(st taskqueue.Store) {
	defer s.breaking.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == st && !s.closed {
		_ = s.server.Close()
		_ = st.Close()
		s.now, s.server = nil, nil
	}
}

// failed notes that a call of store has failed. If it was another process that has
// ended, the next call opens the file again.
func (s *store) failed(st taskqueue.Store, err error) {
	if !errors.Is(err, remote.ErrGone) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == st && !s.closed {
		s.now = nil
		_ = st.Close()
	}
}

// Close ends the use of the file. What other processes have sent is carried out.
func (s *store) Close() error {
	defer s.breaking.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.server != nil {
		err = s.server.Close()
	}
	if s.now != nil {
		err = errors.Join(err, s.now.Close())
	}
	return err
}

// openFile opens the file itself. broken is called when it could not be written.
func openFile(path string, broken func(taskqueue.Store)) (_ taskqueue.Store, err error) {
	defer func() { // bbolt panics over some of what check does not know
		if p := recover(); p != nil {
			err = &damagedError{path, fmt.Errorf("%v", p)}
		}
	}()
	i, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist) || err == nil && i.Size() == 0
	if !fresh && err == nil {
		err = check(path)
	}
	switch {
	case fresh:
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("taskqueue: %w", err)
	case err != nil:
		return nil, &damagedError{path, err}
	}
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:        lockPatience,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("taskqueue: %w", err)
	case err != nil:
		if fresh { // a full disk has kept a part of what a new file begins with
			err = errors.Join(err, os.Truncate(path, 0))
		}
		return nil, fmt.Errorf("taskqueue: %s cannot be opened: %w", path, err)
	}
	d := newDB(bolt)
	if err = prepare(bolt, path); err == nil {
		var e *engine.Engine
		if e, err = engine.Open(context.Background(), d, nil); err == nil {
			d.told = func() { broken(e) }
			return e, nil
		}
	}
	return nil, errors.Join(err, bolt.Close())
}

// prepare makes what a new file lacks.
func prepare(bolt *bbolt.DB, path string) error {
	known := false
	err := bolt.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(about)
		if known = b != nil; known {
			if got := string(b.Get(formatKey)); got != format {
				return fmt.Errorf("taskqueue: %s has format %q, and this program knows format %s: use a newer program", path, got, format)
			}
		}
		return nil
	})
	if known || err != nil {
		return err
	}
	return bolt.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(about)
		if err == nil {
			err = b.Put(formatKey, []byte(format))
		}
		if err == nil {
			_, err = tx.CreateBucket(bucket)
		}
		return err
	})
}
