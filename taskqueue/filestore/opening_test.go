package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// full makes a file with n tasks.
func full(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tasks")
	s, err := filestore.Open(path)
	require.NoError(t, err)
	for i := 0; i < n; i += 100 {
		var tasks []taskqueue.NewTask
		for j := range min(100, n-i) {
			tasks = append(tasks, taskqueue.NewTask{Task: taskqueue.Task{ID: fmt.Sprint(i + j), Type: "t", Payload: make([]byte, 500)}})
		}
		_, err := s.Enqueue(context.Background(), "q", tasks)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return path
}

func refused(t *testing.T, path string, says string) {
	t.Helper()
	s, err := filestore.Open(path)
	if err == nil {
		_ = s.Close()
	}
	require.Error(t, err)
	assert.Contains(t, err.Error(), says)
	assert.Contains(t, err.Error(), filepath.Base(path))
}

func TestFilesThatAreNoStores(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	refused(t, write("text", "dear diary"), "is damaged")
	refused(t, write("long", string(make([]byte, 100_000))), "is damaged")
	refused(t, dir, "folder")
	refused(t, filepath.Join(dir, "none", "tasks"), "make the folder")
	refused(t, "/dev/null", "plain file")
	_, err := filestore.Open("")
	var wrong *taskqueue.InvalidError
	assert.ErrorAs(t, err, &wrong)

	other := filepath.Join(dir, "other")
	b, err := bbolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, b.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }))
	require.NoError(t, b.Close())
	refused(t, other, "a file of another program")
	b, err = bbolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, b.View(func(tx *bbolt.Tx) error {
		assert.Nil(t, tx.Bucket([]byte("taskqueue")), "nothing was written into it")
		return nil
	}))
	require.NoError(t, b.Close())

	sibling := filepath.Join(dir, "sibling") // such as a file of kvqueue
	b, err = bbolt.Open(sibling, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, b.Update(func(tx *bbolt.Tx) error {
		about, err := tx.CreateBucket([]byte("about"))
		require.NoError(t, err)
		require.NoError(t, about.Put([]byte("format"), []byte("1")))
		_, err = tx.CreateBucket([]byte("kvqueue"))
		return err
	}))
	require.NoError(t, b.Close())
	refused(t, sibling, "a file of another program")

	s, err := filestore.Open(write("empty", ""))
	require.NoError(t, err, "an empty file is a new one")
	require.NoError(t, s.Close())
}

func TestAFileOfANewerFormat(t *testing.T) {
	path := full(t, 1)
	b, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, b.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("about")).Put([]byte("format"), []byte("99"))
	}))
	require.NoError(t, b.Close())
	refused(t, path, "format 99, and this program knows formats up to 1: use a newer program")
}

// The file is cut while it is open, as by a program that writes another one in its place.
func TestAFileThatIsCutWhileItIsOpen(t *testing.T) {
	path := full(t, 2000)
	s, err := filestore.Open(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 4096))
	_, err = s.Claim(context.Background(), taskqueue.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 1000, Lease: 1e9})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "is damaged")
	require.Eventually(t, func() bool { // when it has been opened again
		_, err = s.Get(context.Background(), "q", "1")
		return err != nil && strings.Contains(err.Error(), path+" is damaged")
	}, 20*time.Second, time.Millisecond)
	_ = s.Close()
}

func TestAFileThatMayNotBeUsed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may use every file: only the text of the error is tested")
		return
	}
	path := full(t, 1)
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := filestore.Open(path)
	require.True(t, errors.Is(err, fs.ErrPermission), err)
	refused(t, path, "this user may not")
}
