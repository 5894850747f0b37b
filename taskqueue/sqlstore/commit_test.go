//go:build unix

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// The server ends connections, by pg_terminate_backend as by a fast shutdown, while they commit: an
// error that is not ErrUnknown is of a task that is not stored.
func TestARefusedEnqueueIsNotStored(t *testing.T) {
	c := startCluster(t, "-c", "fsync=on", "-c", "commit_delay=20000", "-c", "commit_siblings=0")
	defer func() { _ = os.RemoveAll(c.dir) }()
	defer func() { c.stop() }()
	s, err := New(t.Context(), poolOf(t, c.url("postgres")))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	add(t, s, newTask("first"))
	admin, err := pgx.Connect(t.Context(), c.url("postgres"))
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
	defer stop()
	var mu sync.Mutex
	refused := map[string]error{}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%d-%d", i, n)
				if _, err := s.Enqueue(context.Background(), "q", []taskqueue.Task{newTask(id)}); err != nil && !errors.Is(err, taskqueue.ErrUnknown) {
					mu.Lock()
					refused[id] = err
					mu.Unlock()
				}
			}
		})
	}
	for ctx.Err() == nil {
		_, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND query = 'COMMIT'")
		require.NoError(t, err)
		sleep(ctx, 30*time.Millisecond)
	}
	all.Wait()
	for id, err := range refused {
		_, found := s.Get(t.Context(), "q", id)
		assert.ErrorIs(t, found, taskqueue.ErrNotFound, "%s was refused: %v", id, err)
	}
}

// A driver of a user whose commits have an error that says nothing of what has become of them.
type doubtfulDriver struct{ driver.Driver }

type doubtfulConn struct{ driver.Conn }

type doubtfulTx struct{ driver.Tx }

var errDisk = errors.New("disk I/O error")

func (d doubtfulDriver) Open(name string) (driver.Conn, error) {
	c, err := d.Driver.Open(name)
	return doubtfulConn{c}, err
}

func (c doubtfulConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return doubtfulTx{tx}, err
}

func (t doubtfulTx) Commit() error { return errors.Join(errDisk, t.Tx.Commit()) }

// driverOf is the driver of a name.
func driverOf(t *testing.T, name string) driver.Driver {
	db, err := sql.Open(name, memory)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	return db.Driver()
}

func TestACommitThatFailsInThePoolOfAUserIsUnknown(t *testing.T) {
	sql.Register("doubtful sqlite", doubtfulDriver{driverOf(t, "sqlite")})
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, err := OpenFile(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	db, err := sql.Open("doubtful sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	s = &Store{}
	s.enqueues.init(s)
	s.db = newFile(&pool{db: db}, "tq_", programTime)
	_, err = s.Enqueue(t.Context(), "q", []taskqueue.Task{newTask("a")})
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, taskqueue.ErrUnknown)
}
