//go:build linux

package etcdtest_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// While the store is compacted again and again to its last revision, and the member is started anew
// so that watches have to begin again, consumers miss nothing.
func TestConsumersBearThatTheStoreIsCompacted(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	kv := etcdkv.New(cluster.Client(t), patient)
	ctx, cancel := context.WithCancel(t.Context())
	var got atomic.Int64
	var ended []<-chan error
	for range 2 {
		q, over := open(t, etcdkv.New(cluster.Client(t), patient), "q"), make(chan error, 1)
		ended = append(ended, over)
		go func() {
			over <- q.Consume(ctx, 2, 1, func(context.Context, []kvqueue.Item) error {
				got.Add(1)
				return nil
			})
		}()
	}
	in, sent := open(t, kv, "q"), 0
	for round := range 3 {
		for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; sent++ {
			enqueue(t, in, strconv.Itoa(sent))
			_, rev, err := kv.Read(t.Context())
			require.NoError(t, err)
			require.NoError(t, kv.Compact(t.Context(), rev))
		}
		eventually(t, "all have come", func() bool { return got.Load() == int64(sent) })
		if round < 2 {
			// while nobody can see it things happen, and are forgotten
			cluster.Members[0].Kill()
			require.NoError(t, cluster.Members[0].Start())
		}
	}
	cancel()
	for _, over := range ended {
		require.ErrorIs(t, <-over, context.Canceled)
	}
}

// A watch from a revision that is forgotten is told so, and the member reads again: the
// handle that was cut off hears of items that were added meanwhile.
func TestAHandleWithItsOwnCompactionGoesOn(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	q := open(t, etcdkv.New(cluster.Client(t), patient), "q", kvqueue.Compact(time.Second))
	for i := range 40 {
		enqueue(t, q, strconv.Itoa(i))
		require.Equal(t, strconv.Itoa(i), string(one(t, q).Value))
		time.Sleep(50 * time.Millisecond)
	}
	client := cluster.Client(t)
	eventually(t, "the revisions of the beginning are forgotten", func() bool {
		for range etcdkv.New(client).Watch(t.Context(), 1, []byte("kvq/")) {
			return true
		}
		return false
	})
}
