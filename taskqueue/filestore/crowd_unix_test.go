//go:build unix

package filestore

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/boltfile"
	"github.com/ambit-go/ambit/taskqueue"
)

// Another process looks through the file just now, so nobody gets it. Who tries again does not
// look through it once more: many would keep each other from it for ever.
func TestAFileThatOthersLookAtIsLookedThroughOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	nobody := func(taskqueue.Store) {}
	s, err := openFile(path, new(boltfile.Checked), nobody)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	require.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_SH))

	var checked boltfile.Checked
	_, err = openFile(path, &checked, nobody)
	require.ErrorIs(t, err, errTaken)
	info, err := other.Stat()
	require.NoError(t, err)
	_, err = other.WriteAt(make([]byte, int(info.Size())-2*os.Getpagesize()), 2*int64(os.Getpagesize())) // all but what says that it is one of bbolt
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	_, err = openFile(path, &checked, nobody)
	assert.ErrorIs(t, err, errTaken)
	_, err = openFile(path, new(boltfile.Checked), nobody)
	assert.ErrorAs(t, err, new(*boltfile.Damaged))
}
