//go:build linux

package etcdtest_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// A visits is a store that counts the keys that etcd visits for each range: those that there
// are, and those that were deleted and not compacted yet.
type visits struct {
	kvqueue.KV
	root string // with which the keys of the queue begin

	mu      sync.Mutex
	keys    []string // all that were ever written, in order
	ranges  int
	visited int
	most    int
	outside []string // ranges that are not in one kind of keys of the queue
}

func (v *visits) see(begin, end []byte) {
	if end == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	from, _ := slices.BinarySearch(v.keys, string(begin))
	to, _ := slices.BinarySearch(v.keys, string(end))
	v.ranges, v.visited, v.most = v.ranges+1, v.visited+to-from, max(v.most, to-from)
	kind := len(v.root) + 1 // the letter of the kind; the end may be that of the kind as a whole
	if !bytes.HasPrefix(begin, []byte(v.root)) || len(end) < kind || !bytes.Equal(begin[:kind], end[:kind]) {
		v.outside = append(v.outside, string(begin)+" to "+string(end))
	}
}

func (v *visits) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	for _, r := range ranges {
		v.see(r.Begin, r.End)
	}
	return v.KV.Read(ctx, ranges...)
}

func (v *visits) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	for _, g := range guards {
		v.see(g.Key, g.End)
	}
	v.mu.Lock()
	for _, w := range writes {
		if i, there := slices.BinarySearch(v.keys, string(w.Key)); !there {
			v.keys = slices.Insert(v.keys, i, string(w.Key))
		}
	}
	v.mu.Unlock()
	return v.KV.Commit(ctx, guards, writes)
}

// reset begins to count anew.
func (v *visits) reset() (ranges, visited, most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ranges, visited, most = v.ranges, v.visited, v.most
	v.ranges, v.visited, v.most = 0, 0, 0
	return ranges, visited, most
}

// Every range is in the keys of one kind of the queue, and what is visited for an item does not grow
// with how many items there were before.
func TestWhatIsVisitedDoesNotGrowWithTheQueue(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	kv := &visits{KV: etcdkv.New(cluster.Client(t), patient), root: "kvq/orders/"}
	q := open(t, kv, "orders")
	batch := make([][]byte, 50)
	for i := range batch {
		batch[i] = []byte(strconv.Itoa(i))
	}
	const rounds = 100 // of 50 items each
	for range rounds {
		_, err := q.Enqueue(t.Context(), batch...)
		require.NoError(t, err)
	}
	kv.reset()
	var perItem []int
	for range 5 {
		for taken := 0; taken < 20*len(batch); {
			require.NoError(t, q.Do(t.Context(), 10, func(_ context.Context, items []kvqueue.Item) error {
				taken += len(items)
				return nil
			}))
		}
		ranges, visited, most := kv.reset()
		t.Logf("%d ranges, %d keys visited, %d at most in one", ranges, visited, most)
		perItem = append(perItem, visited/(20*len(batch)))
	}
	assert.Empty(t, kv.outside)
	first, last := perItem[0], perItem[4]
	assert.LessOrEqual(t, last, 2*first+100, "%v", perItem)
	assert.Less(t, last, 150, "a transaction adds 50 items, and a look spans few of them")
}
