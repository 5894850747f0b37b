package kvqueue_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A countedReads counts the ranges that are read.
type countedReads struct {
	kvqueue.KV
	ranges atomic.Int64
}

func (c *countedReads) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	c.ranges.Add(int64(len(ranges)))
	return c.KV.Read(ctx, ranges...)
}

// A countedNotes counts the transactions that say that a group waits.
type countedNotes struct {
	kvqueue.KV
	notes atomic.Int64
}

func (c *countedNotes) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return string(w.Value) == "waits" }) {
		c.notes.Add(1)
	}
	return c.KV.Commit(ctx, guards, writes)
}

// failGroups adds two items to each of so many groups, and has the first of each fail.
func failGroups(t *testing.T, q *kvqueue.Queue, groups int) {
	for i := range groups {
		for range 2 {
			_, err := q.Add(t.Context(), []byte("a"), kvqueue.Group(fmt.Sprint("group-", i)))
			require.NoError(t, err)
		}
	}
	for failed := 0; failed < groups; {
		_ = q.Do(t.Context(), 20, func(_ context.Context, items []kvqueue.Item) error {
			failed += len(items)
			return errFails
		})
	}
	time.Sleep(time.Second)
}

// A claim does not look at the groups that wait for their RetryDelay, however many they are. When that is over they go on.
func TestGroupsThatWaitForTheirDelayAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups = 500
		kv := &countedReads{KV: newStore(t)}
		q := open(t, kv, "q", kvqueue.RetryDelay(time.Hour, time.Hour))
		failGroups(t, q, groups)
		one := func(group string) {
			_, err := q.Add(t.Context(), []byte("b"), kvqueue.Group(group))
			require.NoError(t, err)
			require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		}
		before := kv.ranges.Load()
		for i := range 10 { // each is before the last
			one(fmt.Sprint("group-", 9-i, "-new"))
		}
		assert.Less(t, kv.ranges.Load()-before, int64(10*20))
		for i := range groups {
			_, err := q.Add(t.Context(), []byte("c"), kvqueue.Group(fmt.Sprint("group-", i)))
			require.NoError(t, err)
		}
		assert.GreaterOrEqual(t, keys(t, kv, "m"), groups)
		for range groups / 10 { // each look tidies
			assert.Zero(t, takeNow(t, q, 1))
			time.Sleep(time.Millisecond)
		}
		assert.Zero(t, keys(t, kv, "m"))
		soundGroups(t, kv, q)
		time.Sleep(time.Hour)
		soundGroups(t, kv, q)
		for left := 3 * groups; left > 0; {
			require.NoError(t, q.Do(t.Context(), 20, func(_ context.Context, items []kvqueue.Item) error {
				left -= len(items)
				return nil
			}))
		}
		soundGroups(t, kv, q)
	})
}

// A group that waits for a short time is not said to wait, which would be a transaction for each failed run.
func TestShortDelaysOfGroupsAreNotSaid(t *testing.T) {
	notes := func(delay time.Duration) (n int64) {
		synctest.Test(t, func(t *testing.T) {
			kv := &countedNotes{KV: newStore(t)}
			q := open(t, kv, "q", kvqueue.RetryDelay(delay, delay))
			_, err := q.Add(t.Context(), []byte("a"), kvqueue.Group("g"))
			require.NoError(t, err)
			assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
			require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
			soundGroups(t, kv.KV, q)
			n = kv.notes.Load()
		})
		return n
	}
	assert.Zero(t, notes(50*time.Millisecond))
	assert.EqualValues(t, 1, notes(time.Second))
}

// A process dies while groups wait for their delay, and what it had becomes dead letters, as these were its last crashes: their
// groups go on.
func TestGroupsGoOnWhoseProcessDiesInTheirDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups = 50
		kv := newStore(t)
		net := newCut(kv)
		dies := open(t, net, "q", kvqueue.RetryDelay(time.Hour, time.Hour), kvqueue.MaxCrashes(1), kvqueue.TTL(2*time.Second))
		failGroups(t, dies, groups)
		assert.Zero(t, keys(t, kv, "m"))
		net.off()
		other := open(t, kv, "q")
		for left := groups; left > 0; {
			require.NoError(t, other.Do(t.Context(), 20, func(_ context.Context, items []kvqueue.Item) error {
				left -= len(items)
				return nil
			}))
		}
		letters, err := other.Dead(t.Context(), kvqueue.Key{}, 100)
		require.NoError(t, err)
		assert.Len(t, letters, groups)
		soundGroups(t, kv, other)
		net.on()
	})
}

// An Ack whose answer was lost, and which nobody counts on any more, comes while the item waits for its delay. The group
// goes on.
func TestAGroupGoesOnWhenAnAckOfBeforeItsDelayComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q", kvqueue.RetryDelay(time.Hour, time.Hour))
		for _, v := range []string{"a", "b"} {
			_, err := q.Add(t.Context(), []byte(v), kvqueue.Group("g"))
			require.NoError(t, err)
		}
		var guards []kvqueue.Guard
		var writes []kvqueue.Write
		err := q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
				if writes == nil {
					guards, writes = g, w
					return kvqueue.ErrUnknown
				}
				return kvqueue.ErrNoSpace
			})
			assert.Error(t, q.Ack(ctx, items...))
			net.intercept(nil)
			return errFails
		})
		assert.ErrorIs(t, err, errFails)
		time.Sleep(time.Second)
		_, err = net.KV.Commit(t.Context(), guards, writes)
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		assert.NoError(t, q.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, "b", string(items[0].Value))
			return nil
		}))
		soundGroups(t, net.KV, q)
	})
}
