package kvqueuetest

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// groupTests are those of a queue with groups on the store.
var groupTests = []test{
	{"the items of a group come one after another", groupsInOrder},
	{"an item of a group that has failed comes before the others of it", groupFails},
	{"a group of a session that ended goes on", groupComesBack},
	{"Transact and Commit add items of groups", groupsInTransactions},
}

// add adds values to groups: each a pair of both.
func (f *fixture) add(q *kvqueue.Queue, pairs ...string) {
	f.Helper()
	for i := 0; i < len(pairs); i += 2 {
		_, err := q.Add(f.ctx, []byte(pairs[i+1]), kvqueue.Group(pairs[i]))
		require.NoError(f, err)
	}
}

func groupsInOrder(f *fixture) {
	q, other := f.open("q"), f.open("q")
	f.add(q, "a", "a1", "b/\xff", "b1", "a", "a2")
	f.enqueue(q, "1")
	require.NoError(f, q.Do(f.ctx, 10, func(_ context.Context, items []kvqueue.Item) error {
		assert.ElementsMatch(f, []string{"a1", "b1", "1"}, values(items))
		for _, i := range items {
			assert.Equal(f, map[string]string{"a1": "a", "b1": "b/\xff", "1": ""}[string(i.Value)], i.Group)
		}
		f.add(other, "a", "a3", "c", "c1")
		assert.Equal(f, []string{"c1"}, f.takes(other, 10), "the other groups are held")
		f.length(q, kvqueue.Length{Ready: 2, Grouped: 2, Claimed: 3})
		return q.Ack(f.ctx, items...)
	}))
	assert.Equal(f, []string{"a2"}, f.takes(other, 10))
	assert.Equal(f, []string{"a3"}, f.takes(q, 10))
	f.empty(q)
	a, err := q.Audit(f.ctx)
	require.NoError(f, err)
	assert.Empty(f, a.Faults)
}

func groupFails(f *fixture) {
	q := f.open("q", kvqueue.MaxAttempts(2))
	f.add(q, "a", "a1", "a", "a2")
	for range 2 {
		assert.ErrorIs(f, q.Do(f.ctx, 2, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(f, []string{"a1"}, values(items))
			return errBoom
		}), errBoom)
	}
	letters, err := q.Dead(f.ctx, kvqueue.Key{}, 2)
	require.NoError(f, err)
	require.Len(f, letters, 1)
	assert.Equal(f, "a", letters[0].Group)
	n, err := q.Requeue(f.ctx, letters[0].Key)
	require.NoError(f, err)
	assert.Equal(f, 1, n)
	assert.Equal(f, []string{"a1"}, f.takes(q, 2))
	assert.Equal(f, []string{"a2"}, f.takes(q, 2))
}

func groupComesBack(f *fixture) {
	q := f.open("q")
	f.add(q, "a", "a1", "a", "a2")
	ends := f.open("q", kvqueue.TTL(f.leastTTL()))
	claimed, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		_ = ends.Do(f.ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error {
			close(claimed)
			<-ctx.Done()
			return nil
		})
	}()
	<-claimed
	require.NoError(f, ends.Close(f.ctx))
	<-closed
	for i, attempt := range []int{2, 1} {
		require.NoError(f, q.Do(f.ctx, 2, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(f, []string{fmt.Sprint("a", i+1)}, values(items))
			assert.Equal(f, attempt, items[0].Attempt)
			return nil
		}))
	}
}

func groupsInTransactions(f *fixture) {
	q, to := f.open("q"), f.open("to")
	require.NoError(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) {
		tx.Add(q, []byte("1"), kvqueue.Group("a"))
		tx.Add(q, []byte("2"), kvqueue.Group("a"))
	}))
	for range 2 {
		require.NoError(f, q.Do(f.ctx, 2, func(ctx context.Context, items []kvqueue.Item) error {
			require.Len(f, items, 1)
			return q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Add(to, items[0].Value, kvqueue.Group(items[0].Group)) })
		}))
	}
	assert.Equal(f, []string{"1"}, f.takes(to, 2))
	assert.Equal(f, []string{"2"}, f.takes(to, 2))
	f.empty(q)
	f.empty(to)
}
