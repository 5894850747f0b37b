package sqlitekv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A slowDisk takes what is written when it is told to.
type slowDisk struct{ waits, takes chan struct{} }

func newSlowDisk(s *Store) slowDisk {
	d := slowDisk{make(chan struct{}), make(chan struct{})}
	s.file.disk.sync = func(log *os.File) error {
		d.waits <- struct{}{}
		<-d.takes
		return waitForDisk(log)
	}
	return d
}

func putNew(s *Store, key string) error {
	_, err := s.Commit(context.Background(), []kvqueue.Guard{{Key: []byte(key), Is: kvqueue.Absent}}, []kvqueue.Write{{Key: []byte(key)}})
	return err
}

// A process that waits for the disk does not keep others from writing.
func TestTheFileIsFreeWhileAProcessWaitsForTheDisk(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	mode, _, err := s.file.writer.number("PRAGMA synchronous")
	require.NoError(t, err)
	assert.EqualValues(t, 1, mode, "NORMAL: SQLite waits when it begins its log anew, and else does not")
	disk := newSlowDisk(s)
	done := make(chan error, 1)
	go func() { done <- putNew(s, "a") }()
	<-disk.waits
	require.NoError(t, putNew(other, "b"))
	select {
	case err := <-done:
		t.Fatal("it is done before it is on the disk: ", err)
	default:
	}
	close(disk.takes)
	require.NoError(t, <-done)
}

// An answer that rests on what another has written, which may not be on the disk, waits for the disk, though nothing is written.
func TestARefusalWaitsForTheDisk(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	disk := newSlowDisk(s)
	var waited atomic.Int64
	other.file.disk.sync = func(log *os.File) error {
		waited.Add(1)
		return waitForDisk(log)
	}
	done := make(chan error, 1)
	go func() { done <- putNew(s, "a") }()
	<-disk.waits
	require.ErrorIs(t, putNew(other, "a"), kvqueue.ErrConflict)
	assert.EqualValues(t, 1, waited.Load())
	close(disk.takes)
	require.NoError(t, <-done)
}

// The repeat of an id that another process has added just now is one, too: its caller relies on the item.
func TestARepeatWaitsForTheDisk(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	open := func(s *Store) *kvqueue.Queue {
		q, err := kvqueue.Open(t.Context(), s, "q")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
		_, err = q.Add(t.Context(), []byte("x"), kvqueue.ID("x"))
		require.NoError(t, err)
		return q
	}
	_, q := open(s), open(other)
	var waited atomic.Int64
	other.file.disk.sync = func(log *os.File) error {
		waited.Add(1)
		return waitForDisk(log)
	}
	_, err := q.Add(t.Context(), []byte("x"), kvqueue.ID("x"))
	require.NoError(t, err)
	assert.NotZero(t, waited.Load())
}

// After a power failure everything is there of which a call has said so: what it has written, and what it was refused for. Of the log
// only that is left then which the disk has taken.
func TestNothingIsLostOfWhichACallHasSaidThatItIsThere(t *testing.T) {
	path := newPath(t)
	var mu sync.Mutex
	var onDisk []byte // of the log
	takes := func(log *os.File) error {
		now, err := os.ReadFile(log.Name())
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if len(now) > len(onDisk) { // it is too short to begin anew
			onDisk = now
		}
		return nil
	}
	stores := []*Store{opened(t, path), opened(t, path)}
	for _, s := range stores {
		s.file.disk.sync = takes
	}
	var failures sync.WaitGroup
	for i := range 4 {
		failures.Go(func() {
			for n := range 8 {
				key := fmt.Sprint(n / 2 * 2) // several write the same one
				if err := putNew(stores[i%2], key); err != nil && !errors.Is(err, kvqueue.ErrConflict) {
					assert.NoError(t, err)
				}
				mu.Lock()
				log := onDisk
				mu.Unlock()
				assert.True(t, there(t, afterPowerFailure(t, path, log), key), "key %s, by %d", key, i)
			}
		})
	}
	failures.Wait()
}

// afterPowerFailure opens a file as it is when only so much of its log was on the disk.
func afterPowerFailure(t *testing.T, path string, log []byte) *Store {
	file, err := os.ReadFile(path)
	assert.NoError(t, err)
	left := filepath.Join(t.TempDir(), "left.db")
	assert.NoError(t, os.WriteFile(left, file, 0o600))
	assert.NoError(t, os.WriteFile(left+"-wal", log, 0o600))
	return opened(t, left)
}

// A disk that has not taken something has lost it perhaps, whatever it says later. Until it is in the file itself nobody is told
// that it was done, and nobody reads it.
func TestADiskThatFailsIsSaidUntilAllIsInTheFile(t *testing.T) {
	path := newPath(t)
	s, reads := opened(t, path), opened(t, path)
	errDisk := errors.New("the disk is broken")
	s.file.disk.sync = func(log *os.File) error {
		s.file.disk.sync = waitForDisk // it says it once
		return errDisk
	}
	l, err := reads.file.reader() // as long as somebody reads, the log is in use
	require.NoError(t, err)
	require.NoError(t, l.within("BEGIN", func() error {
		_, _, err := l.number("SELECT rev FROM state")
		require.NoError(t, err)
		for range 3 {
			err := putNew(s, "a")
			require.ErrorIs(t, err, kvqueue.ErrUnknown)
			require.ErrorContains(t, err, path)
			_, _, err = s.Read(t.Context())
			require.ErrorIs(t, err, kvqueue.ErrUnknown)
		}
		return nil
	}))
	reads.file.release(l)
	require.ErrorIs(t, putNew(s, "a"), kvqueue.ErrConflict, "it was done")
	log, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	assert.Zero(t, log.Size(), "all is in the file")
	assert.True(t, there(t, s, "a"))
}
