package kvqueue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A visited store counts the keys that a store as etcd visits: all of a range, whatever its
// limit is.
type visited struct {
	kvqueue.KV
	keys int
}

func (v *visited) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	for _, r := range ranges {
		r.Limit, r.KeysOnly = 0, true
		results, _, err := v.KV.Read(ctx, r)
		if err != nil {
			return nil, 0, err
		}
		v.keys += len(results[0].Pairs)
	}
	return v.KV.Read(ctx, ranges...)
}

// The queue was begun in a store that had been used for long, and is dense behind a wide gap.
func TestALookAtAWholeQueueVisitsEachKeyAFewTimes(t *testing.T) {
	kv := newStore(t)
	for range 30_000 {
		_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("other")}})
		require.NoError(t, err)
	}
	const items = 5000
	q := open(t, kv, "q")
	for i := range items {
		_, err := q.Enqueue(t.Context(), fmt.Append(nil, i))
		require.NoError(t, err)
	}
	counts := &visited{KV: kv}
	sees := open(t, counts, "q")
	counts.keys = 0
	n, err := sees.Len(t.Context())
	require.NoError(t, err)
	assert.Equal(t, kvqueue.Length{Ready: items}, n)
	assert.Less(t, counts.keys, 6*items, "of Len")
	counts.keys = 0
	a, err := sees.Audit(t.Context())
	require.NoError(t, err)
	assert.Empty(t, a.Faults)
	assert.Less(t, counts.keys, 12*items, "of Audit, which reads payloads, too")
}
