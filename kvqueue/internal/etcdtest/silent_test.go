//go:build linux

package etcdtest_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// trusting is a store on one member, by a client that never asks whether a connection is one.
func trusting(t *testing.T, m *etcdtest.Member) *etcdkv.Store {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return etcdkv.New(client, etcdkv.Timeout(2*time.Second))
}

// A watch on a member that stands still ends, whether it has begun or not.
func TestAWatchOnAMemberThatStandsStillEnds(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	kv := trusting(t, cluster.Members[0])
	rev := mustCommit(t, etcdkv.New(cluster.Client(t), patient), put("a/1", ""))
	var stopped time.Time
	eventually(t, "the watch begins", func() bool { // a member that is as slow as one that stands still may not let it
		for e, err := range kv.Watch(t.Context(), rev-1, []byte("a/"), []byte("b/")) {
			if err == nil {
				assert.Equal(t, "a/1", string(e.Key))
				require.NoError(t, cluster.Members[0].Stop())
				stopped = time.Now()
			} else {
				assert.ErrorContains(t, err, "does not answer")
			}
		}
		return !stopped.IsZero()
	})
	t.Logf("noticed after %v", time.Since(stopped))
	for _, err := range kv.Watch(t.Context(), rev-1, []byte("a/")) { // by which nothing comes
		assert.ErrorContains(t, err, "does not answer")
	}
	require.NoError(t, cluster.Members[0].Continue())
	eventually(t, "it is there again", func() bool {
		for _, err := range kv.Watch(t.Context(), rev-1, []byte("a/")) {
			return err == nil
		}
		return false
	})
}

// A watch goes on though nothing was written since it began. A member does not tell the progress of
// such a watch. One that was as slow as a member that stands still is watched again.
func TestAWatchOnAQuietClusterGoesOn(t *testing.T) {
	client := etcdtest.Start(t, 1).Client(t)
	kv := etcdkv.New(client, etcdkv.Timeout(4*time.Second))
	eventually(t, "it goes on", func() (goesOn bool) {
		rev := mustCommit(t, etcdkv.New(client, patient), put("b/0", ""))
		written := make(chan error, 1)
		write := time.AfterFunc(7*time.Second, func() { // it was given up after 6 s
			_, err := client.Put(context.Background(), "a/1", "")
			written <- err
		})
		for e, err := range kv.Watch(t.Context(), rev, []byte("a/"), []byte("b/")) {
			if goesOn = err == nil; goesOn {
				assert.Equal(t, "a/1", string(e.Key))
				break
			}
			assert.ErrorContains(t, err, "does not answer")
		}
		if !write.Stop() {
			assert.NoError(t, <-written)
		}
		return goesOn
	})
}

// A deaf store watches by another.
type deaf struct {
	kvqueue.KV
	watched kvqueue.KV
}

func (d deaf) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return d.watched.Watch(ctx, after, prefixes...)
}

// An item that others have claimed for a handle comes to it, though the member that it watches
// stands still.
func TestAHandleWhoseWatchIsSilentGetsItsItems(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	leader := cluster.Leader(t)
	silent := other(cluster, leader)
	kv := trusting(t, leader)
	first, second := open(t, kv, "q"), open(t, deaf{kv, trusting(t, silent)}, "q")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := make(chan string, 2)
	var takers sync.WaitGroup
	take := func(q *kvqueue.Queue, who string) {
		takers.Go(func() {
			assert.NoError(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { got <- who; return nil }))
		})
	}
	have := func(kind string, n int) func() bool {
		return func() bool {
			results, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("kvq/q/" + kind + "/"), End: []byte("kvq/q/" + kind + "0")})
			return err == nil && len(results[0].Pairs) == n
		}
	}
	take(first, "the first")
	eventually(t, "the first waits, and assigns", have("s", 1))
	take(second, "the second")
	eventually(t, "the second waits", have("r", 1))
	require.NoError(t, silent.Stop())
	_, err := first.Enqueue(ctx, []byte("a"), []byte("b")) // and the first claims one for the second
	require.NoError(t, err)
	begin := time.Now()
	assert.ElementsMatch(t, []string{"the first", "the second"}, []string{<-got, <-got}) // in turn, unless the first stands still
	t.Logf("it came after %v", time.Since(begin))
	require.NoError(t, silent.Continue())
	takers.Wait() // an item is acknowledged after its handler has ended, and before the queue is closed
}
