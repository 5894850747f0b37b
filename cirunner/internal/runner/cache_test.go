//go:build unix

package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stop does not wait until a large file of a key was read.
func TestAStopEndsTheDigestOfAFile(t *testing.T) {
	dir := t.TempDir()
	large, err := os.Create(filepath.Join(dir, "large"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(1<<40))
	require.NoError(t, large.Close())
	work, cancel := context.WithCancel(t.Context())
	cancel()
	require.NotEmpty(t, (&attempt{work: work, dir: dir}).digest([]string{"large"}))
}
