package boltkv_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
)

// Each looks through the whole file before it opens it, and keeps the others from opening it
// meanwhile.
func TestOfThoseThatBeginTogetherOneHasTheFile(t *testing.T) {
	path := newPath(t)
	s, err := boltkv.Open(path, boltkv.NoSync(), boltkv.NoSocket())
	require.NoError(t, err)
	value := make([]byte, 1<<20)
	for i := range 64 {
		_, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte{byte(i)}, Value: value}})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	for range 2 {
		var all sync.WaitGroup
		shared := make([]*boltkv.Shared, 4)
		errs := make([]error, len(shared))
		for i := range shared {
			all.Go(func() { shared[i], errs[i] = boltkv.Share(t.Context(), path, boltkv.NoSync()) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		own := 0
		for _, s := range shared {
			if s.Own() {
				own++
			}
		}
		assert.Equal(t, 1, own)
		for _, s := range shared {
			require.NoError(t, s.Close())
		}
	}
}
