package filestore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/filestore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestRandomPrograms(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+12; seed++ {
		s, err := filestore.Open(filepath.Join(t.TempDir(), "tasks"))
		require.NoError(t, err)
		if err := taskqueuetest.Program(s, taskqueuetest.RandomText(seed, 500), 6*time.Millisecond, false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		require.NoError(t, s.Close())
	}
}
