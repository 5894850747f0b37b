//go:build linux

package etcdtest_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// Several clients add the same ids at the same time, again and again: each item comes once, and all are told its key.
// When the items are gone the ids stand for the retention, and go then, by leases of the member.
func TestItemsWithIDsComeOnce(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	const handles, ids = 4, 100
	var queues []*kvqueue.Queue
	for range handles {
		queues = append(queues, open(t, etcdkv.New(cluster.Client(t), patient), "q", kvqueue.Retention(time.Second)))
	}
	var keys [handles][ids]kvqueue.Key
	var adding sync.WaitGroup
	for h, q := range queues {
		for i := range ids {
			adding.Go(func() {
				var err error
				keys[h][i], err = q.Add(t.Context(), []byte(strconv.Itoa(i)), kvqueue.ID(strconv.Itoa(i)))
				assert.NoError(t, err)
			})
		}
	}
	adding.Wait()
	for h := range queues {
		assert.Equal(t, keys[0], keys[h])
	}
	got := map[string]bool{}
	for range ids {
		got[string(one(t, queues[0]).Value)] = true
	}
	assert.Len(t, got, ids)
	n, err := queues[0].Len(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
	for _, q := range queues {
		assert.LessOrEqual(t, q.Stats().Enqueued, int64(ids))
	}
	kv := etcdkv.New(cluster.Client(t), patient)
	eventually(t, "the ids have gone", func() bool {
		results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/i/"), End: []byte("kvq/q/k"), Limit: 1})
		return err == nil && len(results[0].Pairs) == 0
	})
	again, err := queues[1].Add(t.Context(), []byte("anew"), kvqueue.ID("1"))
	require.NoError(t, err)
	assert.NotContains(t, keys[0], again)
	a, err := queues[0].Audit(t.Context())
	require.NoError(t, err)
	assert.Empty(t, a.Faults)
}
