//go:build unix

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func TestAStoreIsOfADatabaseThatIsOpen(t *testing.T) {
	db, err := sql.Open("pgx", emptyDatabase(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for name, open := range map[string]func() error{
		"a nil *sql.DB":           func() error { _, err := New(t.Context(), (*sql.DB)(nil)); return err },
		"a nil pool":              func() error { _, err := New(t.Context(), (*pgxpool.Pool)(nil)); return err },
		"a nil Option":            func() error { _, err := OpenFile(t.Context(), memory, nil); return err },
		"a *sql.DB of PostgreSQL": func() error { _, err := New(t.Context(), db); return err },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorAs(t, open(), new(*taskqueue.InvalidError)) })
	}
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, err := OpenFile(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.db.transact(t.Context(), writes, func(t tx) error { return t.run(statement("DELETE FROM tq_schema")) }))
	require.NoError(t, s.Close())
	_, err = OpenFile(t.Context(), path)
	require.ErrorContains(t, err, "is there, and empty")
}

func TestEnqueueTxIsGivenATransaction(t *testing.T) {
	pg, pool, _ := pgStores(t, 1)
	path := filepath.Join(t.TempDir(), "tasks.db")
	file, err := OpenFile(t.Context(), path)
	require.NoError(t, err)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	inFile, err := db.Begin()
	require.NoError(t, err)
	defer func() { _ = inFile.Rollback() }()
	onServer, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = onServer.Rollback(context.Background()) }()
	tasks := []taskqueue.Task{newTask("a")}
	for s, open := range map[*Store]any{file: inFile, pg[0]: onServer} {
		for _, tx := range []any{nil, pgx.Tx(nil), (*sql.Tx)(nil)} {
			_, err := s.EnqueueTx(t.Context(), tx, "q", tasks)
			require.ErrorAs(t, err, new(*taskqueue.InvalidError))
			assert.ErrorContains(t, err, "it is nil")
		}
		require.NoError(t, s.Close())
		_, err := s.EnqueueTx(t.Context(), open, "q", tasks)
		require.ErrorIs(t, err, taskqueue.ErrClosed)
	}
}

// Ids that no task can have are not found, as others.
func TestIDsThatNoTaskCanHave(t *testing.T) {
	pg, _, _ := pgStores(t, 1)
	for name, s := range map[string]*Store{"sqlite": openTemp(t), "postgres": pg[0]} {
		t.Run(name, func(t *testing.T) {
			add(t, s, newTask("a"), newTask("\ufffd"))
			for _, id := range []string{"a\x00b", "\xff", ""} {
				done, err := s.Act(t.Context(), "q", id, store.ActDelete)
				require.ErrorIs(t, err, taskqueue.ErrNotFound)
				assert.False(t, done)
				done, err = s.Unschedule(t.Context(), "q", id)
				require.NoError(t, err)
				assert.False(t, done)
				assert.Equal(t, []store.SettleResult{store.Gone}, settleAs(t, s, store.Succeeded, taskqueue.Info{Task: taskqueue.Task{ID: id}}))
			}
		})
	}
}

// Readers, and the first writer of a file that has its tables. It is for the race detector.
func TestTheFirstWriterBesideReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	for range 5 {
		s, err := OpenFile(t.Context(), path)
		require.NoError(t, err)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for range 20 {
					_, err := s.Stats(context.Background(), "q")
					assert.NoError(t, err)
				}
			})
			all.Go(func() { add(t, s, newTask(fmt.Sprint(i))) })
		}
		all.Wait()
		require.NoError(t, s.Close())
	}
}

// Drivers have errors of their own, with the text of SQLite.
func TestAFileIsBusyByAnyDriver(t *testing.T) {
	assert.True(t, isBusy(fmt.Errorf("x: %w", errors.New("sqlite3: database is locked"))))
	assert.True(t, isBusy(errors.New("database table is locked: tq_task")))
	assert.False(t, isBusy(errors.New("sqlite3: disk I/O error")))
	assert.False(t, isBusy(nil))
}
