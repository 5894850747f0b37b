package filestore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// As TestAFullDisk, with a real one, where this user may make it.
func TestAFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Logf("no file system could be mounted (%v): TestAFullDisk tests the same", err)
		return
	}
	defer func() { assert.NoError(t, syscall.Unmount(dir, 0)) }()
	path := filepath.Join(dir, "tasks")
	s, err := filestore.Open(path)
	require.NoError(t, err)
	add := func(id string) error {
		_, err := s.Enqueue(context.Background(), "q", []taskqueue.NewTask{{Task: taskqueue.Task{ID: id, Type: "t", Payload: make([]byte, 5000)}}})
		return err
	}
	var ids []string
	for err == nil {
		id := fmt.Sprint(len(ids))
		if err = add(id); err == nil {
			ids = append(ids, id)
		}
	}
	assert.ErrorIs(t, err, syscall.ENOSPC)
	assert.Contains(t, err.Error(), "the disk is full, make room")

	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"))
	require.Eventually(t, func() bool { return add("there is room again") == nil }, 20*time.Second, time.Millisecond)
	for _, id := range ids {
		_, err := s.Get(context.Background(), "q", id)
		require.NoError(t, err, id)
	}
	sound(t, s)
	require.NoError(t, s.Close())

	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err = filestore.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "read-only, name a file in another one")
}
