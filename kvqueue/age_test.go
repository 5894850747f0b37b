package kvqueue_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

func ageOf(t *testing.T, q *kvqueue.Queue) time.Duration {
	t.Helper()
	age, err := q.Age(t.Context())
	require.NoError(t, err)
	return age
}

func TestTheAgeOfAQueueIsThatOfItsFirstReadyItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		assert.Zero(t, ageOf(t, q))
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) { tx.Enqueue(q, []byte("b")) }))
		time.Sleep(time.Minute)
		assert.InDelta(t, 2*time.Minute, ageOf(t, q), float64(time.Millisecond))
		a, err := q.Audit(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, 2*time.Minute, time.Since(a.Oldest), float64(time.Millisecond))
		require.NoError(t, q.Do(t.Context(), 1, each(func(i kvqueue.Item) {
			assert.InDelta(t, 2*time.Minute, time.Since(i.Added), float64(time.Millisecond))
			assert.InDelta(t, time.Minute, ageOf(t, q), float64(time.Millisecond))
		})))
		require.NoError(t, q.Do(t.Context(), 1, each(func(kvqueue.Item) {})))
		assert.Zero(t, ageOf(t, q))
	})
}

// each is a handler that has f see each item.
func each(f func(i kvqueue.Item)) func(context.Context, []kvqueue.Item) error {
	return func(_ context.Context, items []kvqueue.Item) error {
		for _, i := range items {
			f(i)
		}
		return nil
	}
}

// However often an item is claimed, fails, is taken from a process that went away, dies and is put back: it stays
// as old as it is.
func TestAnItemKeepsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q, dying := open(t, kv, "q", kvqueue.MaxAttempts(2)), open(t, net, "q", kvqueue.TTL(time.Second))
		pos, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		begin := time.Now()
		is := func() {
			t.Helper()
			time.Sleep(time.Minute)
			assert.InDelta(t, time.Since(begin), ageOf(t, q), float64(time.Millisecond))
		}
		failOnce(t, q)
		is()
		_ = dying.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			net.off()
			<-ctx.Done()
			return ctx.Err()
		})
		net.on()
		require.ErrorIs(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, 3, items[0].Attempt)
			assert.WithinDuration(t, begin, items[0].Added, time.Millisecond)
			return errFails
		}), errFails)
		letters, err := q.Dead(t.Context(), kvqueue.Key{}, 1)
		require.NoError(t, err)
		require.Len(t, letters, 1)
		assert.Equal(t, errFails.Error(), letters[0].Why, "the time is no part of the text")
		assert.WithinDuration(t, begin, letters[0].Added, time.Millisecond)
		_, err = q.Requeue(t.Context(), pos.First)
		require.NoError(t, err)
		is()
	})
}

// An item without a time, which a version that knew of none has added, has no age, and is an item like others.
func TestAnItemOfAnEarlierVersionHasNoAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		key := append([]byte("kvq/q/q/"), pos.First[:]...)
		results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: key})
		require.NoError(t, err)
		was := results[0].Pairs[0].Value
		require.True(t, bytes.HasPrefix(was, []byte{0, 0, 1}), "such a version reads what it knows of")
		_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: key, Value: was[:3]}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Zero(t, ageOf(t, q))
		require.NoError(t, q.Do(t.Context(), 1, each(func(i kvqueue.Item) { assert.True(t, i.Added.IsZero()) })))
	})
}

// A producer whose clock is ahead makes no negative age.
func TestAnItemFromTheFutureHasNoNegativeAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		future := []byte{0, 0, 1, 0x7f, 0, 0, 0, 0, 0, 0xff}
		_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: append([]byte("kvq/q/q/"), pos.First[:]...), Value: future}})
		require.NoError(t, err)
		assert.Zero(t, ageOf(t, q))
		items, err := q.Peek(t.Context(), 1)
		require.NoError(t, err)
		assert.True(t, items[0].Added.After(time.Now()))
	})
}

// The first of several ready items without a group counts, whatever the clocks of their producers have said.
func TestTheAgeIsNotThatOfALaterItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: append([]byte("kvq/q/q/"), pos.First[:]...), Value: []byte{0, 0, 1}}})
		require.NoError(t, err)
		assert.Zero(t, ageOf(t, q), "of the first it is not known")
	})
}
