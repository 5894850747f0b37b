// Package sqlitekv is a store of package kvqueue in a SQLite file, for the processes of one
// machine: no server is needed, and no C compiler. No process owns the file: any of them may end,
// be killed or be stopped, and the others go on. An acknowledged item is on the disk.
//
//	kv, err := sqlitekv.Open("orders.db")
//	...
//	defer kv.Close()
//	q, err := kvqueue.Open(ctx, kv, "orders")
//
// Transactions that wait in one process are written together, with one wait for the disk. A
// process that is stopped (SIGSTOP) within the fraction of a millisecond in which it writes keeps
// the file locked until it goes on or is killed: until then every other call that writes waits,
// and returns when its ctx ends, with an error that says so. The file must be on a disk of the machine: SQLite does
// not lock files well over a network.
package sqlitekv

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/fits"
)

// A Store is a [kvqueue.KV] in a file. It is made by [Open].
type Store struct {
	file   *file
	now    clock
	boot   string
	queue  queue
	writer chan struct{} // has an element while somebody of this process writes: SQLite has no queue for writers

	// lockedAt is since when the one that writes finds the file locked, in nanoseconds; 0: it does not.
	lockedAt atomic.Int64
	vain     atomic.Pointer[vain] // the last that has given up; nil: none has

	closed  atomic.Bool
	closing sync.Once
	failed  error // of closing

	mu      sync.Mutex
	watches map[*watch]struct{}
	stop    context.CancelFunc // ends the poller; nil: there is none
	poller  sync.WaitGroup
}

var (
	_ kvqueue.KV      = (*Store)(nil)
	_ kvqueue.Updater = (*Store)(nil)
)

type settings struct{ noSync bool }

// An Option changes how a file is opened.
type Option func(*settings)

// NoSync does not wait until the disk has received a transaction: the last ones may be lost when
// the machine stops. The end of a process loses nothing, and the file is never damaged by it. All
// processes that use the file should say the same.
func NoSync() Option { return func(s *settings) { s.noSync = true } }

// Open opens the store in a file, which is made if there is none; its folder must be there. Only
// the user who has made the file may use it. Beside it SQLite keeps two more, with -wal and -shm
// behind the name, while it is open.
//
// Open fails with an error that says what to do if the file is empty, gone without its -wal, damaged, of another
// program or of a newer version, or cannot be read and written. Sessions of an earlier start of the machine have
// ended.
func Open(path string, options ...Option) (*Store, error) {
	var set settings
	for _, o := range options {
		o(&set)
	}
	if path == "" {
		return nil, &kvqueue.InvalidError{What: "file", Why: "it has no name: say something such as queue.db"}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlitekv: %w", err)
	}
	boot, now := bootClock()
	s := &Store{now: now, boot: boot, writer: make(chan struct{}, 1), watches: map[*watch]struct{}{}}
	if s.file, err = openFile(path, set.noSync); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	// To connect meets a lock, too: whoever closes the file as the last has it for itself for a moment.
	err = s.patient(ctx, time.Time{}, func() (err error) { s.file.writer, err = s.file.connect(); return err })
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		s.file.close()
		return nil, err
	}
	return s, nil
}

// openPatience is how long Open waits for others that have the file locked.
const openPatience = 10 * time.Second

// Limits returns what a transaction may hold.
func (s *Store) Limits() kvqueue.Limits {
	l := fits.Limits
	l.Updates = true
	return l
}

// Close ends the use of the file by this process; watches end, and calls fail that come later.
// Sessions are not ended: that is the affair of their users. It may be called any number of times.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.mu.Lock()
		if s.stop != nil {
			s.stop()
		}
		for w := range s.watches {
			w.ring()
		}
		s.mu.Unlock()
		s.poller.Wait()
		s.writer <- struct{}{} // nobody writes any more
		s.failed = s.file.close()
		<-s.writer
	})
	return s.failed
}

var errClosed = fmt.Errorf("%w: the store", kvqueue.ErrClosed)
