package sqlitestore

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

func TestAFileWithoutItsClockSaysWhatToDo(t *testing.T) {
	if boot, _ := bootClock(); boot == "" {
		t.Skip("processes share no clock here")
	}
	path := filepath.Join(t.TempDir(), "locks.db")
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	_, err = s.file.db.Exec("DROP TABLE lk_clock")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Open(t.Context(), path)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.NotErrorIs(t, err, locks.ErrUnavailable)
	require.ErrorContains(t, err, clockTable)
}

func TestAPoolThatIsNilIsAClearError(t *testing.T) {
	_, err := New(t.Context(), nil)
	require.ErrorIs(t, err, locks.ErrValidation)
	var none *Store
	_, err = locks.New(none)
	require.ErrorIs(t, err, locks.ErrValidation)
}
