package workdir

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noRoom lets no file grow beyond a size while f runs, as a full disk does.
func noRoom(t *testing.T, size uint64, f func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }()
	f()
}

// A part of the artifacts is not handed on as the whole.
func TestArtifactsThatHaveNoRoom(t *testing.T) {
	dir := project(t, map[string]string{"out/large": strings.Repeat("x", 100_000), "out/small": "x"})
	r, _ := open(t, dir)
	_, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	_, err = r.Checkout(t.Context(), "one")
	require.NoError(t, err)
	noRoom(t, 10_000, func() { _, _, err = r.Collect(t.Context(), "one", []string{"out"}, nil) })
	require.ErrorIs(t, err, syscall.EFBIG)
	left, err := os.ReadDir(r.Path("artifacts"))
	require.NoError(t, err)
	assert.Empty(t, left)
	n, err := r.Restore(t.Context(), "one", "two")
	require.NoError(t, err)
	assert.Zero(t, n)
	require.NoError(t, r.Close(false))
}

// A run that cannot begin is not one that was killed.
func TestARunThatHasNoRoom(t *testing.T) {
	dir := project(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(dir, Name), 0o755))
	r := &Run{Dir: filepath.Join(dir, Name, "1"), ID: 1, Project: dir}
	noRoom(t, 0, func() { require.ErrorIs(t, r.make(), syscall.EFBIG) })
	require.NoError(t, r.lock.Close()) // as the end of its process does
	next, stale := open(t, dir)
	assert.Empty(t, stale)
	assert.Equal(t, 1, next.ID)
	require.NoError(t, next.Close(false))
}
