package boltfile_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/boltfile"
)

func TestAFileIsLookedThroughAgainWhenItHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	var c boltfile.Checked
	assert.False(t, c.Is(path), "nobody has looked")
	f, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Note(f))
	assert.True(t, c.Is(path))
	require.NoError(t, f.Close())
	assert.Error(t, c.Note(f))
	assert.True(t, c.Is(path))

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Millisecond)))
	assert.False(t, c.Is(path), "it was written")
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	assert.True(t, c.Is(path))
	require.NoError(t, os.Truncate(path, 1))
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	assert.False(t, c.Is(path), "it has another size")

	other := filepath.Join(filepath.Dir(path), "other")
	require.NoError(t, os.WriteFile(other, []byte("one"), 0o600))
	require.NoError(t, os.Chtimes(other, time.Time{}, info.ModTime()))
	require.NoError(t, os.Rename(other, path))
	assert.False(t, c.Is(path), "it is another file")
	require.NoError(t, os.Remove(path))
	assert.False(t, c.Is(path))
}
