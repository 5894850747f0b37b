package boltkv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
	"github.com/ambit-go/ambit/kvqueue/kvqueuetest"
)

func TestAFileIsAStore(t *testing.T) {
	kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
		s, err := boltkv.Open(t.TempDir() + "/queue.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}

func TestAFileOfAnotherProcessIsAStore(t *testing.T) {
	kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
		path := t.TempDir() + "/queue.db"
		s, err := boltkv.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		c, err := boltkv.Dial(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	})
}

func TestASharedFileIsAStore(t *testing.T) {
	kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
		s, err := boltkv.Share(t.Context(), t.TempDir()+"/queue.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}
