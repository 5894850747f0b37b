//go:build unix

package boltkv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/boltfile"
)

// Another process looks through the file just now, so nobody gets it. Who tries again does not
// look through it once more: many would keep each other from it for ever.
func TestAFileThatOthersLookAtIsLookedThroughOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	s, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	require.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_SH))

	var checked boltfile.Checked
	_, err = open(path, &checked)
	require.ErrorIs(t, err, ErrTaken)
	info, err := other.Stat()
	require.NoError(t, err)
	_, err = other.WriteAt(make([]byte, int(info.Size())-2*os.Getpagesize()), 2*int64(os.Getpagesize())) // all but what says that it is one of bbolt
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	_, err = open(path, &checked)
	assert.ErrorIs(t, err, ErrTaken)
	_, err = Open(path)
	assert.ErrorAs(t, err, new(*boltfile.Damaged))
}
