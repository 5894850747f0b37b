package sqlitestore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// TestAFileThatCannotBeOpenedIsInvalid: to ask again does not help.
func TestAFileThatCannotBeOpenedIsInvalid(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("this is the text of a letter, and no database at all"), 0o600))
	for _, path := range []string{filepath.Join(dir, "no", "such", "folder", "l.db"), dir, text} {
		_, err := locks.Open(t.Context(), "sqlite:"+path)
		require.ErrorIs(t, err, locks.ErrValidation, path)
		require.NotErrorIs(t, err, locks.ErrUnavailable)
	}
}
