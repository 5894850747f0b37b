package filestore_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestStore(t *testing.T) {
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		s, err := filestore.Open(filepath.Join(t.TempDir(), "tasks"))
		require.NoError(t, err)
		return s
	})
}
