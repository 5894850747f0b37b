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
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ambit-go/ambit/taskqueue"
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

// lockPatience is how long the lock of the file is waited for.
const lockPatience = 50 * time.Millisecond

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
	own, err := openFile(s.path)
	if err == nil {
		if s.server, err = remote.Listen(s.path+".sock", own); err != nil {
			return nil, errors.Join(fmt.Errorf("taskqueue: other processes could not use %s: %w", s.path, err), own.Close())
		}
		s.now = own
		return own, nil
	}
	if !errors.Is(err, bolterrors.ErrTimeout) {
		return nil, err
	}
	other, err := remote.Dial(s.path + ".sock")
	if err != nil {
		return nil, fmt.Errorf("taskqueue: another process has %s, and does not answer at its socket: %w", s.path, err)
	}
	s.now = other
	return other, nil
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

// openFile opens the file itself.
func openFile(path string) (taskqueue.Store, error) {
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
		return nil, fmt.Errorf("taskqueue: %s cannot be opened; it may be damaged: %w", path, err)
	}
	err = prepare(bolt, path)
	if err == nil {
		var e *engine.Engine
		if e, err = engine.Open(context.Background(), newDB(bolt), nil); err == nil {
			return e, nil
		}
	}
	return nil, errors.Join(err, bolt.Close())
}

// prepare makes what a new file lacks.
func prepare(bolt *bbolt.DB, path string) error {
	return bolt.Update(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(about); b != nil {
			if got := string(b.Get(formatKey)); got != format {
				return fmt.Errorf("taskqueue: %s has format %q, and this program knows format %s: use a newer program", path, got, format)
			}
			return nil
		}
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
