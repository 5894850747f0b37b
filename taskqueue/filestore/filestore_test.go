package filestore_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestStore(t *testing.T) {
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		s, err := filestore.Open(filepath.Join(t.TempDir(), "tasks"))
		require.NoError(t, err)
		return s
	})
}

// A second process uses the file through the first.
func TestStoreThroughTheProcessThatHasTheFile(t *testing.T) {
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		path := filepath.Join(t.TempDir(), "tasks")
		owner, err := filestore.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, owner.Close()) })
		s, err := filestore.Open(path)
		require.NoError(t, err)
		return s
	})
}

func TestAnotherTakesOverWhenTheProcessThatHasTheFileEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	owner, err := filestore.Open(path)
	require.NoError(t, err)
	other, err := filestore.Open(path)
	require.NoError(t, err)
	task := taskqueue.NewTask{Task: taskqueue.Task{ID: "a", Type: "t"}}
	_, err = other.Enqueue(t.Context(), "q", []taskqueue.NewTask{task})
	require.NoError(t, err)
	require.NoError(t, owner.Close())

	_, err = other.Get(t.Context(), "q", "a")
	require.Error(t, err, "one call may be lost")
	i, err := other.Get(t.Context(), "q", "a")
	require.NoError(t, err)
	require.Equal(t, taskqueue.StateReady, i.State)
	require.NoError(t, other.Close())
	_, err = other.Get(t.Context(), "q", "a")
	require.ErrorIs(t, err, taskqueue.ErrClosed)
}

func TestWorkers(t *testing.T) {
	taskqueuetest.RunWorkers(t, func(t *testing.T) taskqueue.Store {
		s, err := filestore.Open(filepath.Join(t.TempDir(), "tasks"))
		require.NoError(t, err)
		return s
	})
}

func TestWorkersThroughTheProcessThatHasTheFile(t *testing.T) {
	taskqueuetest.RunWorkers(t, func(t *testing.T) taskqueue.Store {
		path := filepath.Join(t.TempDir(), "tasks")
		owner, err := filestore.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, owner.Close()) })
		s, err := filestore.Open(path)
		require.NoError(t, err)
		return s
	})
}
