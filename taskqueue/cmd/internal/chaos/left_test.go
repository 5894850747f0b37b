//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// lived has a task run on s, and deletes it.
func lived(t *testing.T, s taskqueue.Store) {
	root, err := taskqueue.New(s)
	require.NoError(t, err)
	q := root.In(queueName)
	_, err = q.EnqueueAll(t.Context(), []taskqueue.Task{{ID: "a", Type: "t", UniqueKey: "k"}, {ID: "b", Type: "t", MaxFailures: 1}})
	require.NoError(t, err)
	require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
		if c.ID == "b" {
			return taskqueue.Dead(context.Canceled)
		}
		return nil
	}}, taskqueue.WorkUntilEmpty()))
	for _, state := range []taskqueue.State{taskqueue.StateDone, taskqueue.StateDead} {
		n, err := q.Purge(t.Context(), state)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

func TestAPayloadThatIsLeftOnRedisIsSeen(t *testing.T) {
	library, err := buildClock(t.TempDir())
	require.NoError(t, err)
	r := &redisWorld{}
	dir := t.TempDir()
	r.s, err = newServer(dir, dir, "always", library)
	require.NoError(t, err)
	require.NoError(t, r.s.start(t.Context()))
	defer func() {
		assert.NoError(t, r.s.client.Close())
		assert.True(t, r.s.kill())
		assert.NoError(t, r.s.log.Close())
	}()
	s, err := redisstore.New(t.Context(), r.s.client)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	lived(t, s)
	left, err := r.left(t.Context())
	require.NoError(t, err)
	assert.Empty(t, left)

	require.NoError(t, r.s.client.HSet(t.Context(), "tq:{"+queueName+"}:p", "a", "payload").Err())
	left, err = r.left(t.Context())
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestAPayloadThatIsLeftInSQLiteIsSeen(t *testing.T) {
	w := &sqliteWorld{path: filepath.Join(t.TempDir(), "tasks.db")}
	s, err := sqlstore.OpenFile(t.Context(), w.path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	lived(t, s)
	left, err := w.left(t.Context())
	require.NoError(t, err)
	assert.Empty(t, left)
	db, err := sql.Open("sqlite", w.path)
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO tq_payload VALUES ('q', 'a', '', '', '', '', '')")
	require.NoError(t, errors.Join(err, db.Close()))
	left, err = w.left(t.Context())
	require.NoError(t, err)
	assert.Len(t, left, 1)
}
