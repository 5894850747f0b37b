//go:build unix

package filestore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/fulldisk"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// What was acknowledged is there when there is room again, and the store goes on.
func TestAFullDisk(t *testing.T) {
	if !fulldisk.Alone(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "tasks")
	s, err := filestore.Open(path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	other, err := filestore.Open(path) // through the socket
	require.NoError(t, err)
	defer func() { assert.NoError(t, other.Close()) }()
	add := func(st taskqueue.Store, i int) error {
		task := taskqueue.Task{ID: fmt.Sprint(i), Type: "t", Payload: make([]byte, 20_000), MaxFailures: 1, MaxCrashes: 1}
		_, err := st.Enqueue(t.Context(), "q", []taskqueue.NewTask{{Task: task}})
		return err
	}
	undo := fulldisk.Limit(t, 1<<20)
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = add([]taskqueue.Store{s, other}[n%2], n)
	}
	n-- // the last was not acknowledged
	require.Error(t, err)
	assert.Contains(t, err.Error(), "could not be written")
	assert.Contains(t, err.Error(), "too large", "the reason")
	undo()
	for _, st := range []taskqueue.Store{s, other} {
		require.Eventually(t, func() bool { return add(st, n) == nil }, 20*time.Second, 5*time.Millisecond)
		for i := range n + 1 {
			_, err := st.Get(t.Context(), "q", fmt.Sprint(i))
			require.NoError(t, err)
		}
		faults, err := st.(taskqueue.Auditor).Audit(t.Context(), "q")
		require.NoError(t, err)
		assert.Empty(t, faults)
	}
}

// A file that was begun on a full disk is begun anew.
func TestAFullDiskAtTheFirstOpen(t *testing.T) {
	if !fulldisk.Alone(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "tasks")
	undo := fulldisk.Limit(t, 5000)
	_, err := filestore.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the disk is full")
	undo()
	s, err := filestore.Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
