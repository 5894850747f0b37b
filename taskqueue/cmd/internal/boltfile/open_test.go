package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsFreshIfThereIsNothingInIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	fresh := func(want bool) {
		t.Helper()
		got, err := Fresh(path)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	fresh(true)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	fresh(true)
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	fresh(false)
	_, err := Fresh(dir)
	assert.ErrorContains(t, err, "folder")
	_, err = Fresh(os.DevNull)
	assert.ErrorContains(t, err, "plain file")
}

func TestAFormatIsKnownUpToThatOfTheProgram(t *testing.T) {
	for _, text := range []string{"1", "2"} {
		assert.NoError(t, Format(text, 2))
	}
	assert.ErrorContains(t, Format("3", 2), "format 3, and this program knows formats up to 2: use a newer program")
	for _, text := range []string{"", "two"} {
		assert.Equal(t, ErrForeign, Format(text, 2))
	}
}

func TestWhatCannotBeUsedSaysWhatToDo(t *testing.T) {
	path, invalid := filepath.Join("folder", "f"), errors.New("invalid")
	for says, err := range map[string]error{
		"this user may not":           fs.ErrPermission,
		"make the folder folder":      fs.ErrNotExist,
		"read-only":                   syscall.EROFS,
		"make room":                   syscall.ENOSPC,
		"the disk is full":            syscall.EFBIG,
		"is full":                     syscall.EDQUOT,
		"full":                        errors.New("write f: " + syscall.ENOSPC.Error()), // as bbolt has it
		"cannot be used: no idea":     errors.New("no idea"),
		"is damaged: page 7":          &Panicked{"page 7"},
		"is damaged: invalid":         fmt.Errorf("%w", invalid),
		"folder/f is damaged: before": fmt.Errorf("%w", &Damaged{"p", "folder/f", errors.New("before")}),
	} {
		got := Unusable("p", path, err, invalid)
		assert.ErrorContains(t, got, says)
		assert.ErrorContains(t, got, "p: ")
		assert.ErrorIs(t, got, err)
	}
}
