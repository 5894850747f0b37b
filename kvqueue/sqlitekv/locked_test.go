package sqlitekv_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// lock locks a file for all others that write, until the function is called that it returns.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(context.Background())
	require.NoError(t, err)
	_, err = c.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() {
		_, err := c.ExecContext(context.Background(), "ROLLBACK")
		assert.NoError(t, err)
		_ = c.Close()
	}
}

// A call that ends while another has the file locked says so.
func TestAFileThatIsLockedIsSaid(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	unlock := lock(t, path)
	write := func() error {
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		_, err := s.Commit(ctx, nil, []kvqueue.Write{{Key: []byte("k")}})
		return err
	}
	first := make(chan error)
	go func() { first <- write() }()
	for _, err := range []error{write(), <-first} {
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, path+" is locked by another process")
	}
	assert.NoError(t, s.Waits(), "nobody does")
	unlock()
	_, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	assert.NoError(t, err)
}

// A queue tells its callers so, too.
func TestAQueueInAFileThatIsLockedSaysSo(t *testing.T) {
	path := newPath(t)
	q := openQueue(t, openFile(t, path))
	unlock := lock(t, path)
	defer unlock()
	for name, call := range map[string]func(ctx context.Context) error{
		"Do": func(ctx context.Context) error {
			return q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil })
		},
		"Enqueue": func(ctx context.Context) error { _, err := q.Enqueue(ctx, []byte("a")); return err },
		"Configure": func(ctx context.Context) error {
			_, err := q.Configure(ctx, kvqueue.MaxAttempts(3))
			return err
		},
	} {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		err := call(ctx)
		stop()
		assert.ErrorIs(t, err, context.DeadlineExceeded, name)
		assert.ErrorContains(t, err, "is locked by another process", name)
	}
}
