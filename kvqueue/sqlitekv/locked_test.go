package sqlitekv

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// lock locks a file for all others that write, until the function is called that it returns.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	other := opened(t, path)
	require.NoError(t, other.patient(t.Context(), time.Time{}, func() error {
		_, err := other.file.writer.exec("BEGIN IMMEDIATE")
		return err
	}))
	return func() {
		_, err := other.file.writer.exec("ROLLBACK")
		assert.NoError(t, err)
	}
}

// waiting says whether so many calls write that find the file locked.
func waiting(s *Store, calls int) func() bool {
	return func() bool {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return len(s.queue.steps) == calls && s.Waits() != nil
	}
}

// Calls that end while another has the file locked say so, whichever of them ends first.
func TestAFileThatIsLockedIsSaid(t *testing.T) {
	path := newPath(t)
	s := opened(t, path)
	unlock := lock(t, path)
	const calls = 4
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, calls)
		for range calls {
			go func() {
				_, err := s.Commit(ctx, nil, []kvqueue.Write{{Key: []byte("k")}})
				errs <- err
			}()
		}
		require.Eventually(t, waiting(s, calls), time.Minute, time.Millisecond)
		cancel()
		for range calls {
			err := <-errs
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, path+" is locked by another process")
		}
		assert.NoError(t, s.Waits(), "nobody does")
	}
	unlock()
	_, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	assert.NoError(t, err)
}

// A call that ends after the last that has found the file locked says nothing of that.
func TestALockOfBeforeIsNotSaid(t *testing.T) {
	s := opened(t, newPath(t))
	now := time.Now()
	s.vain.Store(&vain{now.Add(-time.Minute), now})
	assert.Zero(t, s.lockedAfter(now.Add(time.Second)))
	assert.Equal(t, now.Add(-time.Minute), s.lockedAfter(now.Add(-time.Second)))
}

// A queue tells its callers so, too, when the file has been locked for a while.
func TestAQueueInAFileThatIsLockedSaysSo(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, q *kvqueue.Queue) error{
		"Do": func(ctx context.Context, q *kvqueue.Queue) error {
			return q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil })
		},
		"Enqueue": func(ctx context.Context, q *kvqueue.Queue) error { _, err := q.Enqueue(ctx, []byte("a")); return err },
		"Configure": func(ctx context.Context, q *kvqueue.Queue) error {
			_, err := q.Configure(ctx, kvqueue.MaxAttempts(3))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := opened(t, path)
			q, err := kvqueue.Open(t.Context(), s, "q")
			require.NoError(t, err)
			defer func() { require.NoError(t, q.Close(context.Background())) }()
			defer lock(t, path)()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said := make(chan error)
			go func() { said <- call(ctx, q) }()
			require.Eventually(t, func() bool { return s.Waits() != nil }, time.Minute, time.Millisecond)
			time.Sleep(500 * time.Millisecond) // for less it is not worth a word
			cancel()
			err = <-said
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorContains(t, err, fmt.Sprint(path, " is locked by another process"))
		})
	}
}
