package sqlitekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A slowDisk takes what is written when it is told to, once it is slow.
type slowDisk struct {
	slow         atomic.Bool
	waits, takes chan struct{}
}

func newSlowDisk(s *Store) *slowDisk {
	d := &slowDisk{waits: make(chan struct{}), takes: make(chan struct{})}
	s.file.disk.sync = func(log *os.File) error {
		if d.slow.Load() {
			select {
			case d.waits <- struct{}{}:
				<-d.takes
			case <-d.takes:
			}
		}
		return waitForDisk(log)
	}
	return d
}

// holds writes, and returns when that waits for the disk.
func (d *slowDisk) holds(write func() error) (done <-chan error) {
	d.slow.Store(true)
	answer := make(chan error, 1)
	go func() { answer <- write() }()
	<-d.waits
	return answer
}

// openedQueue is a handle that has a session, and has added an item.
func openedQueue(t *testing.T, s *Store) *kvqueue.Queue {
	q, err := kvqueue.Open(t.Context(), s, "q")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	_, err = q.Enqueue(t.Context(), []byte("x"))
	require.NoError(t, err)
	return q
}

// countWaits counts how often a store waits for the disk from now on.
func countWaits(s *Store) *atomic.Int64 {
	var waits atomic.Int64
	s.file.disk.sync = func(log *os.File) error {
		waits.Add(1)
		return waitForDisk(log)
	}
	return &waits
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
	done := disk.holds(func() error { return putNew(s, "a") })
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
	disk, waited := newSlowDisk(s), countWaits(other)
	done := disk.holds(func() error { return putNew(s, "a") })
	require.ErrorIs(t, putNew(other, "a"), kvqueue.ErrConflict)
	assert.EqualValues(t, 1, waited.Load())
	close(disk.takes)
	require.NoError(t, <-done)
}

// The repeat of an id that another process has added just now is one, too: its caller relies on the item.
func TestARepeatWaitsForTheDisk(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	disk, waited := newSlowDisk(s), countWaits(other)
	first, second := openedQueue(t, s), openedQueue(t, other)
	_, err := first.Len(t.Context()) // now it need not wait before it adds
	require.NoError(t, err)
	done := disk.holds(func() error {
		_, err := first.Add(context.Background(), []byte("y"), kvqueue.ID("y"))
		return err
	})
	before := waited.Load()
	_, err = second.Add(t.Context(), []byte("y"), kvqueue.ID("y"))
	require.NoError(t, err)
	assert.Greater(t, waited.Load(), before)
	close(disk.takes)
	require.NoError(t, <-done)
	n, err := second.Len(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, n.Ready)
}

// After a power failure everything is there of which a call has said so: what it has written, and what it was refused for. Only that part of
// the log is left then which the disk has taken.
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

// A disk that has not taken something has lost it perhaps, whatever it says later: all of the log is written again. Until that has
// worked nobody is told that it was done, and nobody reads it; a call that only reads has no doubt about what it has sent.
func TestADiskThatFailsIsSaidUntilItHasEverything(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	errDisk := errors.New("the disk is broken")
	var broken atomic.Bool
	s.file.disk.sync = func(log *os.File) error {
		if broken.Load() {
			return errDisk
		}
		return waitForDisk(log)
	}
	q := openedQueue(t, s)
	broken.Store(true)
	for range 3 {
		err := putNew(s, "a")
		require.ErrorIs(t, err, kvqueue.ErrUnknown)
		require.ErrorContains(t, err, path)
		_, _, err = s.Read(t.Context())
		require.ErrorContains(t, err, errDisk.Error())
		require.NotErrorIs(t, err, kvqueue.ErrUnknown)
	}
	assert.True(t, there(t, other, "a"), "its disk has it")
	enqueued := make(chan error, 1)
	go func() {
		_, err := q.Enqueue(context.Background(), []byte("y"))
		enqueued <- err
	}()
	before, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path+"-wal", long, long))
	broken.Store(false)
	require.ErrorIs(t, putNew(s, "a"), kvqueue.ErrConflict, "it was done")
	now, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), now.ModTime(), 30*time.Minute, "all was written again")
	after, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after[:len(before)]), "as it was")
	require.NoError(t, <-enqueued, "it had only read, and was tried again")
	assert.True(t, there(t, s, "a"))
}

// The log is written again for all whose steps were taken, though the context of the one that writes them has ended.
func TestALogIsWrittenAgainWithoutTheContextOfACaller(t *testing.T) {
	s := opened(t, newPath(t))
	ctx, cancel := context.WithCancel(t.Context())
	s.file.disk.sync = func(log *os.File) error {
		if ctx.Err() == nil {
			cancel()
			return errors.New("the disk is broken")
		}
		return waitForDisk(log)
	}
	_, err := s.Commit(ctx, nil, []kvqueue.Write{{Key: []byte("a")}})
	require.NoError(t, err)
	assert.True(t, there(t, s, "a"))
}

// The log is that of the file, not one beside a link to it.
func TestTheLogOfALinkedFileIsWaitedFor(t *testing.T) {
	real, link := newPath(t), newPath(t)
	opened(t, real)
	require.NoError(t, os.Symlink(real, link))
	require.NoError(t, os.WriteFile(link+"-wal", nil, 0o600))
	s := opened(t, link)
	require.NoError(t, putNew(s, "a"))
	log, err := s.file.disk.log.Stat()
	require.NoError(t, err)
	want, err := os.Stat(real + "-wal")
	require.NoError(t, err)
	assert.True(t, os.SameFile(log, want))
}

// A guard of a Transact does not hold because of what another has written: the refusal waits for the disk, as the repeat of an id does.
func TestARefusedTransactWaitsForTheDisk(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	disk, waited := newSlowDisk(s), countWaits(other)
	q := openedQueue(t, other)
	done := disk.holds(func() error { return putNew(s, "order/17") })
	before := waited.Load()
	require.ErrorIs(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
		tx.If(kvqueue.Guard{Key: []byte("order/17"), Is: kvqueue.Absent})
		tx.Put([]byte("order/17"), nil)
	}), kvqueue.ErrConflict)
	assert.Greater(t, waited.Load(), before)
	close(disk.takes)
	require.NoError(t, <-done)
}

// A read of the writes of another waits for the disk, and no longer than its context.
func TestAReadEndsWithItsContextThoughTheDiskDoesNotAnswer(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	disk := newSlowDisk(other)
	require.NoError(t, putNew(s, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	read := disk.holds(func() error {
		_, _, err := other.Read(ctx, kvqueue.Range{Begin: []byte("a")})
		return err
	})
	more := make(chan error, 1)
	go func() {
		_, _, err := other.Read(ctx, kvqueue.Range{Begin: []byte("a")})
		more <- err
	}()
	cancel()
	require.ErrorIs(t, <-more, context.Canceled)
	require.ErrorIs(t, <-read, context.Canceled)
	results, _, err := other.Glance(t.Context(), kvqueue.Range{Begin: []byte("a")})
	require.NoError(t, err)
	assert.Len(t, results[0].Pairs, 1, "a glance does not wait")
	close(disk.takes)
	assert.True(t, there(t, other, "a"))
}

// A process that waits for the disk has the file locked by nobody.
func TestASlowDiskIsNoLock(t *testing.T) {
	path := newPath(t)
	s := opened(t, path)
	unlock := lock(t, path)
	disk := newSlowDisk(s)
	disk.slow.Store(true)
	done := make(chan error, 1)
	go func() { done <- putNew(s, "a") }()
	require.Eventually(t, func() bool { return s.Waits() != nil }, time.Minute, time.Millisecond)
	unlock()
	<-disk.waits
	assert.NoError(t, s.Waits())
	close(disk.takes)
	require.NoError(t, <-done)
}
