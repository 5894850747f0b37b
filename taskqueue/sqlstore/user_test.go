//go:build unix

package sqlstore

import (
	"context"
	"database/sql"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// A pool of the user, of one connection, whose transactions begin as readers.
func TestRandomProgramsOnSQLiteOfAUser(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+programs(3); seed++ {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "user.db")+"?_pragma=synchronous(OFF)")
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		s, err := New(context.Background(), db)
		require.NoError(t, err)
		if err := taskqueuetest.Program(s, taskqueuetest.RandomText(seed, 400), 30*time.Millisecond, false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		require.NoError(t, s.Close())
		assert.NoError(t, db.Close())
	}
}

// The user has the only connection of the pool.
func TestACallOnAnEmptyPoolEndsWithItsContext(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "user.db"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	s, err := New(t.Context(), db)
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	waited := db.Stats().WaitCount
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Get(ctx, "q", "a")
		ended <- err
	}()
	require.Eventually(t, func() bool { return db.Stats().WaitCount > waited }, patience, time.Millisecond)
	cancel(io.EOF)
	select {
	case err := <-ended:
		assert.ErrorIs(t, err, io.EOF)
	case <-time.After(patience):
		assert.Fail(t, "it waits for a connection")
	}
}

func TestAPrefixIsTheNameOfATable(t *testing.T) {
	for _, bad := range []string{"", "a-", "A", "a;b", "1a"} {
		_, err := OpenFile(t.Context(), memory, Prefix(bad))
		assert.ErrorAs(t, err, new(*taskqueue.InvalidError), bad)
	}
	_, err := OpenFile(t.Context(), "")
	assert.ErrorAs(t, err, new(*taskqueue.InvalidError))
	_, err = taskqueue.Open(t.Context(), "postgres://%zz")
	assert.ErrorAs(t, err, new(*taskqueue.InvalidError))
}
