//go:build linux

package etcdtest_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// Handles with many consumers are busy with more groups than a transaction of etcd holds: of each group one item is worked on at a
// time, in order.
func TestGroupsOnACluster(t *testing.T) {
	const groups, each = 80, 4
	cluster := etcdtest.Start(t, 1)
	store := func() kvqueue.KV { return etcdkv.New(cluster.Client(t), patient) }
	in := open(t, store(), "q")
	var adding sync.WaitGroup
	for g := range groups {
		adding.Go(func() {
			for n := range each {
				_, err := in.Add(t.Context(), []byte(strconv.Itoa(n)), kvqueue.Group(fmt.Sprint("group/", g)))
				assert.NoError(t, err)
			}
		})
	}
	adding.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	next, busy, left := map[string]int{}, map[string]bool{}, groups*each
	var consuming sync.WaitGroup
	var handles []*kvqueue.Queue
	for range 2 {
		q := open(t, store(), "q")
		handles = append(handles, q)
		consuming.Go(func() {
			_ = q.Consume(ctx, 40, 1, func(_ context.Context, items []kvqueue.Item) error {
				i := items[0]
				mu.Lock()
				assert.False(t, busy[i.Group], "%s: two at once", i.Group)
				assert.Equal(t, strconv.Itoa(next[i.Group]), string(i.Value), i.Group)
				busy[i.Group] = true
				mu.Unlock()
				mu.Lock()
				defer mu.Unlock()
				busy[i.Group] = false
				if next[i.Group]++; next[i.Group] > each {
					assert.Fail(t, "claimed again", i.Group)
				}
				if left--; left == 0 {
					stop()
				}
				return nil
			})
		})
	}
	consuming.Wait()
	assert.Len(t, next, groups)
	t.Log(conflicts(handles), "conflicts")
	a, err := in.Audit(t.Context())
	require.NoError(t, err)
	assert.Empty(t, a.Faults)
}

func conflicts(handles []*kvqueue.Queue) (n int64) {
	for _, q := range handles {
		n += q.Stats().Conflicts
	}
	return n
}
