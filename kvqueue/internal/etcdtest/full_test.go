//go:build linux

package etcdtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

func TestAFullStoreTakesAcknowledgementsOnly(t *testing.T) {
	cluster := etcdtest.Start(t, 1, etcdtest.Quota(8<<20))
	client := cluster.Client(t)
	q := open(t, etcdkv.New(client, patient), "q")
	added := map[string]int{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const held = 60 // large ones, whose end makes room: for more than fill can add beyond the quota
	for range held {
		enqueue(t, q, string(make([]byte, 64<<10)))
	}
	err := async.Scope(ctx, func(ctx context.Context) error {
		var items []kvqueue.Item
		for len(items) < held {
			some, err := q.Take(ctx, held-len(items))
			require.NoError(t, err)
			items = append(items, some...)
		}
		fill(t, q, added)
		alarms, err := client.AlarmList(ctx)
		require.NoError(t, err)
		require.NotEmpty(t, alarms.Alarms)
		assert.ErrorIs(t, q.Nack(ctx, errors.New("it puts something back"), items[0]), kvqueue.ErrNoSpace)
		assert.NoError(t, q.Ack(ctx, items[1:]...), "this makes room")
		return nil
	})
	assert.ErrorIs(t, err, kvqueue.ErrNoSpace, "of the one that was to go back")
	assert.ErrorIs(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), kvqueue.ErrNoSpace, "a claim writes")

	for { // what was refused just before raises the alarm once more
		require.NoError(t, async.Sleep(ctx, time.Second))
		clear(t, client, cluster.Members[0].Endpoint)
		_, err := q.Enqueue(ctx, []byte("last"))
		if !errors.Is(err, kvqueue.ErrNoSpace) {
			require.NoError(t, err)
			break
		}
	}
	back := string(make([]byte, 64<<10))
	added[back], added["last"] = 0, 0
	for range added {
		value := string(one(t, q).Value)
		if len(value) == 8<<10 {
			value = value[:8]
		}
		added[value]++
	}
	for name, times := range added {
		assert.Equal(t, 1, times, "%.8q, which Enqueue has said it added, or which went back", name)
	}
}

// fill adds items until the store is full, and notes those that were added. etcd looks at the size
// of its file, which grows ten times a second: so some more come in, and they are small.
func fill(t *testing.T, q *kvqueue.Queue, added map[string]int) {
	large := make([]byte, 8<<10)
	for i := 0; ; i++ {
		copy(large, []byte{'i', 't', 'e', 'm', ' ', byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)})
		_, err := q.Enqueue(t.Context(), large)
		if err == nil {
			added[string(large[:8])] = 0
			continue
		}
		require.ErrorIs(t, err, kvqueue.ErrNoSpace)
		require.NotErrorIs(t, err, kvqueue.ErrUnknown, "the queue has looked what came of it")
		return
	}
}

// clear does what an operator does with a store that is full.
func clear(t *testing.T, client *clientv3.Client, endpoint string) {
	got, err := client.Get(t.Context(), "nothing")
	require.NoError(t, err)
	_, err = client.Compact(t.Context(), got.Header.Revision, clientv3.WithCompactPhysical())
	if !errors.Is(err, rpctypes.ErrCompacted) { // it was done before
		require.NoError(t, err)
	}
	_, err = client.Defragment(t.Context(), endpoint)
	require.NoError(t, err)
	_, err = client.AlarmDisarm(t.Context(), (*clientv3.AlarmMember)(&pb.AlarmMember{}))
	require.NoError(t, err)
}
