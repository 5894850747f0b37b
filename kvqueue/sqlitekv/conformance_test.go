package sqlitekv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/kvqueuetest"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

func TestAFileIsAStore(t *testing.T) {
	kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
		s, err := sqlitekv.Open(t.TempDir() + "/queue.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}

func TestAFileWithoutSyncIsAStore(t *testing.T) {
	kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
		s, err := sqlitekv.Open(t.TempDir()+"/queue.db", sqlitekv.NoSync())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}
