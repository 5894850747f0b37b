//go:build unix

package sqlstore

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func openTemp(t testing.TB) *Store {
	s, err := OpenFile(context.Background(), filepath.Join(t.TempDir(), "tasks.db"))
	require.NoError(t, err)
	return s
}

func TestSQLite(t *testing.T) {
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store { return openTemp(t) })
}

func TestSQLiteWorkers(t *testing.T) {
	taskqueuetest.RunWorkers(t, func(t *testing.T) taskqueue.Store { return openTemp(t) })
}

func TestSQLiteInMemory(t *testing.T) {
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		s, err := OpenFile(context.Background(), memory)
		require.NoError(t, err)
		return s
	})
}
