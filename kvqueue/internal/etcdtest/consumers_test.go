//go:build linux

package etcdtest_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

const shortTTL = 2 * time.Second

func TestItemsOfAConsumerThatWasKilledComeBack(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	kv := etcdkv.New(cluster.Client(t), patient)
	q := open(t, kv, "q")
	enqueue(t, q, "hold", "b")
	begin := time.Now()
	c := order{cluster.Endpoints(), "q", shortTTL, 1}.start(t)
	first := c.says(t, "took")
	require.NoError(t, c.Process.Kill())
	took := c.heard(first, "took") // more if it stood still for longer than its session lives
	var got []kvqueue.Item
	var since []time.Duration
	ctx, stop := context.WithCancel(t.Context())
	var consumer sync.WaitGroup
	consumer.Go(func() {
		_ = q.Consume(ctx, 1, 1, func(_ context.Context, items []kvqueue.Item) error {
			got, since = append(got, items[0]), append(since, time.Since(begin))
			return nil
		})
	})
	eventually(t, "nothing is left", func() bool {
		results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/d/"), End: []byte("kvq/q/d0")})
		return err == nil && len(results[0].Pairs) == 0
	})
	stop()
	consumer.Wait()
	last, holds := first, 0
	for _, l := range took {
		if l.value == "hold" {
			last, holds = l, holds+1
		}
	}
	at := slices.IndexFunc(got, func(i kvqueue.Item) bool { return string(i.Value) == "hold" })
	require.GreaterOrEqual(t, at, 0)
	assert.GreaterOrEqual(t, got[at].Attempt, 1+holds)
	assert.Greater(t, int64(got[at].Fence), last.fence)
	assert.True(t, at > 0 || since[at] >= shortTTL, "what it did not have is free, and what it had when its session has ended")
	if holds == len(took) {
		require.Len(t, got, 2)
		assert.Equal(t, []string{"b", "1"}, []string{string(got[1-at].Value), strconv.Itoa(got[1-at].Attempt)})
	}
}

func TestAConsumerThatStoodStillHasLostItsItem(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	q := open(t, etcdkv.New(cluster.Client(t), patient), "q")
	enqueue(t, q, "hold")
	c := order{cluster.Endpoints(), "q", shortTTL, 1}.start(t)
	first := c.says(t, "took")
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, q.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		assert.GreaterOrEqual(t, items[0].Attempt, 2) // more if it stood still before, and took the item again
		assert.Greater(t, int64(items[0].Fence), first.fence)
		require.NoError(t, c.Process.Signal(syscall.SIGCONT))
		assert.Equal(t, first.fence, c.says(t, "lost").fence, "its context ended")
		return items[0].Err() // what it settles does not touch ours
	}))
	enqueue(t, q, "c")
	for c.says(t, "took").value != "c" { // it goes on under a new session
	}
}

func TestContextsEndBeforeTheStoreGivesTheItemsToOthers(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	q := open(t, etcdkv.New(cluster.Client(t), patient), "q")
	enqueue(t, q, "hold")
	c := order{cluster.Endpoints(), "q", shortTTL, 1}.start(t)
	c.says(t, "took")
	require.NoError(t, cluster.Members[0].Stop())
	lost := c.says(t, "lost") // while nobody could be given it
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, cluster.Members[0].Continue())
	item := one(t, q)
	assert.Equal(t, "hold", string(item.Value))
	assert.Greater(t, int64(item.Fence), lost.fence)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
}

func TestASessionThatEndsWhileItsProcessLives(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	client := cluster.Client(t)
	q := open(t, etcdkv.New(client, patient), "q")
	enqueue(t, q, "a")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := q.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
		leases, err := client.Leases(t.Context())
		require.NoError(t, err)
		for _, l := range leases.Leases {
			_, err := client.Revoke(t.Context(), clientv3.LeaseID(l.ID)) // which ends ctx, maybe before its answer is here
			require.NoError(t, err)
		}
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), kvqueue.ErrLost)
		assert.ErrorIs(t, items[0].Err(), kvqueue.ErrLost)
		return q.Ack(context.WithoutCancel(ctx), items...)
	})
	assert.ErrorIs(t, err, kvqueue.ErrLost)
	assert.Equal(t, 2, one(t, q).Attempt)
}

// Items of one producer are claimed in their order, whichever of 8 processes claims them, and
// the processes do not keep each other from getting on.
func TestEightProcessesTakeItemsInOrder(t *testing.T) {
	const processes, items = 8, 2000
	cluster := etcdtest.Start(t, 1)
	q := open(t, etcdkv.New(cluster.Client(t), patient), "q")
	var children []*child
	for range processes {
		children = append(children, order{cluster.Endpoints(), "q", 30 * time.Second, 4}.start(t))
	}
	enqueue(t, q, numbers(items)...)
	eventually(t, "the queue is empty", func() bool {
		n, err := q.Len(t.Context())
		return err == nil && n == kvqueue.Length{}
	})
	fences := map[string][]int64{}
	claimed, conflicts := int64(0), int64(0)
	for _, c := range children {
		require.NoError(t, c.input.Close())
		for l := range c.lines {
			switch l.word {
			case "took":
				fences[l.value] = append(fences[l.value], l.fence)
			case "stats":
				n, err := strconv.ParseInt(l.value, 10, 64)
				require.NoError(t, err)
				claimed, conflicts = claimed+n, conflicts+l.fence
			case "failed", "lost":
				t.Errorf("a consumer says %+v", l)
			}
		}
	}
	var order []int64
	for _, n := range numbers(items) {
		require.Len(t, fences[n], 1, "item %s was taken once", n)
		order = append(order, fences[n][0])
	}
	assert.True(t, slices.IsSorted(order), "claimed in order")
	t.Logf("%d items were claimed, %d claims were spoilt", claimed, conflicts)
	assert.EqualValues(t, items, claimed)
	// A race for the head has four in five. How few there are depends on the machine: who waits for longer than a busy one takes
	// claims for itself. In fake time that is tested exactly, and K1 and K7 measure it.
	assert.Less(t, conflicts, int64(items/2))
}
