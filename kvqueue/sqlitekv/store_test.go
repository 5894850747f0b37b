package sqlitekv

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

func opened(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "queue.db") }

func there(t *testing.T, s *Store, key string) bool {
	t.Helper()
	results, _, err := s.Read(t.Context(), kvqueue.Range{Begin: []byte(key)})
	require.NoError(t, err)
	return len(results[0].Pairs) == 1
}

// withSession puts a key with a session that lives for an hour.
func withSession(t *testing.T, s *Store, key string) kvqueue.Session {
	t.Helper()
	x, err := s.Session(t.Context(), time.Hour)
	require.NoError(t, err)
	_, err = s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte(key), Session: x}})
	require.NoError(t, err)
	return x
}

// A process that only reads is one, too: it sees no session that has ended, though nobody else is there
// to end it.
func TestASessionEndsByTheClockOfTheFile(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	hour := time.Hour.Microseconds()
	begin := other.now()
	x := withSession(t, s, "k") // so it lives for an hour after begin at least
	other.now = func() int64 { return begin + hour - 1_000_000 }
	assert.True(t, there(t, other, "k"))
	require.NoError(t, x.Renew(t.Context()))
	other.now = func() int64 { return begin + 2*hour }
	assert.False(t, there(t, other, "k"))
	assert.False(t, there(t, s, "k"), "it has ended for all")
	require.ErrorIs(t, x.Renew(t.Context()), kvqueue.ErrSessionLost)
}

func TestSessionsOfAnEarlierStartOfTheMachineHaveEnded(t *testing.T) {
	path := newPath(t)
	s := opened(t, path)
	withSession(t, s, "now")
	s.boot = "an earlier one"
	x := withSession(t, s, "before")
	next := opened(t, path)
	assert.True(t, there(t, next, "now"))
	assert.False(t, there(t, next, "before"))
	require.ErrorIs(t, x.Renew(t.Context()), kvqueue.ErrSessionLost)
}

// The log is trimmed. A watch that begins before what it has left says so.
func TestTheLogIsTrimmed(t *testing.T) {
	s, err := Open(newPath(t), NoSync())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, first, err := s.Read(t.Context())
	require.NoError(t, err)
	var last kvqueue.Rev
	for i := range keepLog + 2*trimEvery {
		require.NoError(t, s.write(t.Context(), func(tx *transaction) (refused, err error) {
			last, err = tx.do([]kvqueue.Write{{Key: fmt.Append(nil, "k/", i%10)}})
			return nil, err
		}))
	}
	var rows int64
	require.NoError(t, s.read(t.Context(), func(l *link) (err error) {
		rows, _, err = l.number("SELECT count(*) FROM log")
		return err
	}))
	assert.LessOrEqual(t, rows, int64(keepLog+trimEvery))
	assert.GreaterOrEqual(t, rows, int64(keepLog))
	for _, err := range s.Watch(t.Context(), first, []byte("k/")) {
		require.ErrorIs(t, err, kvqueue.ErrCompacted)
	}
	n := 0
	for e, err := range s.Watch(t.Context(), last-keepLog, []byte("k/")) {
		require.NoError(t, err)
		if n++; e.Rev == last {
			break
		}
	}
	assert.Equal(t, keepLog, n, "what it has left")
}

// Another process was stopped while it wrote: calls that write return when their ctx ends, and say
// that nothing was done; those that read go on. When the other is gone all goes on.
func TestAProcessThatStandsStillWhileItWrites(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	_, err := other.file.writer.exec("BEGIN IMMEDIATE")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	errs := make(chan error)
	for i := range 3 {
		go func() {
			_, err := s.Commit(ctx, nil, []kvqueue.Write{{Key: fmt.Append(nil, i)}})
			errs <- err
		}()
	}
	for range 3 {
		err := <-errs
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, kvqueue.ErrUnknown)
	}
	assert.False(t, there(t, s, "0"))
	go func() {
		_, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("late")}})
		errs <- err
	}()
	_, err = other.file.writer.exec("ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, <-errs)
	assert.True(t, there(t, s, "late"))
	assert.False(t, there(t, s, "0"))
}

// One whose step cannot be done does not touch those of the others in its transaction.
func TestStepsThatWaitAreOneTransactionEachWithItsOwnAnswer(t *testing.T) {
	s := opened(t, newPath(t))
	s.writer <- struct{}{} // as another that writes
	const n = 20
	var calls []chan error
	for i := range n {
		done := make(chan error, 1)
		calls = append(calls, done)
		is := kvqueue.Absent
		if i%2 == 1 {
			is = kvqueue.Present
		}
		go func() {
			_, err := s.Commit(t.Context(), []kvqueue.Guard{{Key: fmt.Append(nil, i), Is: is}}, []kvqueue.Write{{Key: fmt.Append(nil, i)}})
			done <- err
		}()
	}
	waiting := func() int { s.queue.mu.Lock(); defer s.queue.mu.Unlock(); return len(s.queue.steps) }
	require.Eventually(t, func() bool { return waiting() == n }, time.Minute, time.Millisecond)
	begun := 0
	s.queue.add(&step{done: make(chan struct{}), do: func(*transaction) (error, error) { begun++; return nil, nil }})
	<-s.writer
	for i, done := range calls {
		if i%2 == 1 {
			require.ErrorIs(t, <-done, kvqueue.ErrConflict)
		} else {
			require.NoError(t, <-done)
		}
	}
	assert.Equal(t, 1, begun)
	_, rev, err := s.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, kvqueue.Rev(1+n/2), rev, "each has a revision of its own")
}

// Everything acknowledged is there when there is room again, and the store goes on. SQLite says of a
// file that may have so many pages what it says of a full disk.
func TestAFullDisk(t *testing.T) {
	path := newPath(t)
	s, other := opened(t, path), opened(t, path)
	for _, l := range []*link{s.file.writer, other.file.writer} {
		_, _, err := l.number("PRAGMA max_page_count = 64")
		require.NoError(t, err)
	}
	q, err := kvqueue.Open(t.Context(), s, "q")
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close(context.Background())) }()
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = q.Enqueue(t.Context(), fmt.Appendf(make([]byte, 20_000), "%d", n))
	}
	require.ErrorIs(t, err, kvqueue.ErrNoSpace)
	require.NotErrorIs(t, err, kvqueue.ErrUnknown)
	assert.Contains(t, err.Error(), "make room on the disk of "+path)
	assert.NotContains(t, err.Error(), "defragment")
	_, err = other.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k"), Value: make([]byte, 1<<20)}})
	require.ErrorIs(t, err, kvqueue.ErrNoSpace)
	_, _, err = s.file.writer.number("PRAGMA max_page_count = 100000")
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), []byte("there is room"))
	require.NoError(t, err)
	length, err := q.Len(t.Context())
	require.NoError(t, err)
	assert.Equal(t, n, length.Ready)
}
