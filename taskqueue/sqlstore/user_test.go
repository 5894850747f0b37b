package sqlstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// A pool of the user, of one connection, whose transactions begin as readers.
func TestSQLiteOfAUser(t *testing.T) {
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "user.db")+"?_pragma=synchronous(OFF)")
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
		s, err := New(context.Background(), db)
		require.NoError(t, err)
		return s
	})
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
