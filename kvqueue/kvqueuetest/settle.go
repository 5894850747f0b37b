package kvqueuetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// This file is how items are settled: acknowledged, given back, retried and buried.

func failedGoesBack(f *fixture) {
	q, other := f.open("q"), f.open("q")
	f.enqueue(q, "a", "b", "c")
	var first kvqueue.Item
	err := q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		first = items[0]
		f.enqueue(q, "d")
		f.length(q, kvqueue.Length{Ready: 3, Claimed: 1})
		assert.Equal(f, []string{"b"}, f.takes(other, 1), "the next is free meanwhile")
		return errBoom
	})
	assert.ErrorIs(f, err, errBoom)
	require.NoError(f, other.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		assert.Equal(f, []string{"a"}, values(items))
		assert.Equal(f, first.Key, items[0].Key)
		assert.Equal(f, 1, first.Attempt)
		assert.Equal(f, 2, items[0].Attempt)
		assert.Greater(f, items[0].Fence, first.Fence)
		return nil
	}))
	assert.Equal(f, []string{"c", "d"}, f.takes(q, 10))
	f.empty(q)
}

func triedComesAlone(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a", "b", "c", "d")
	err := q.Do(f.ctx, 3, func(_ context.Context, items []kvqueue.Item) error {
		assert.Equal(f, []string{"a", "b", "c"}, values(items))
		return errBoom
	})
	assert.ErrorIs(f, err, errBoom)
	for _, want := range []string{"a", "b", "c", "d"} {
		assert.Equal(f, []string{want}, f.takes(q, 10))
	}
	f.empty(q)
}

func deadLetters(f *fixture) {
	q := f.open("q", kvqueue.MaxAttempts(2))
	f.enqueue(q, "a", "b", "c")
	for range 2 {
		err := q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(f, []string{"a"}, values(items))
			return errBoom
		})
		assert.ErrorIs(f, err, errBoom)
	}
	f.length(q, kvqueue.Length{Ready: 2, Dead: 1})
	assert.Equal(f, []string{"b"}, f.takes(q, 1))
	letters, err := q.Dead(f.ctx, kvqueue.Key{}, 10)
	require.NoError(f, err)
	require.Len(f, letters, 1)
	assert.Equal(f, "a", string(letters[0].Value))
	assert.Equal(f, "boom", letters[0].Why)
	assert.Equal(f, 2, letters[0].Failures)
	n, err := q.Requeue(f.ctx, letters[0].Key, letters[0].Key)
	require.NoError(f, err)
	assert.Equal(f, 1, n)
	assert.Equal(f, []string{"a", "c"}, f.takes(q, 10), "it is at its old place, and new")
	f.empty(q)
}

func retryDelay(f *fixture) {
	q := f.open("q", kvqueue.RetryDelay(200*time.Millisecond, 200*time.Millisecond))
	f.enqueue(q, "a")
	assert.ErrorIs(f, q.Do(f.ctx, 1, func(context.Context, []kvqueue.Item) error { return errBoom }), errBoom)
	assert.Equal(f, []string{"a"}, f.takes(q, 1))
	f.empty(q)
}

func tryTake(f *fixture) {
	q, other := f.open("q"), f.open("q")
	require.NoError(f, async.Scope(f.ctx, func(ctx context.Context) error {
		items, err := q.TryTake(ctx, 5)
		assert.NoError(f, err)
		assert.Empty(f, items)
		f.enqueue(other, "a", "b")
		items, err = q.TryTake(ctx, 5)
		assert.NoError(f, err)
		assert.Equal(f, []string{"a", "b"}, values(items))
		items, err = other.TryTake(ctx, 5)
		assert.NoError(f, err)
		assert.Empty(f, items, "they are claimed")
		return nil
	}))
	f.empty(q)
}

func takeInScope(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a", "b")
	var item kvqueue.Item
	err := async.Scope(f.ctx, func(ctx context.Context) error {
		items, err := q.Take(ctx, 1)
		require.NoError(f, err)
		item = items[0]
		assert.NoError(f, item.Err())
		return errBoom
	})
	assert.ErrorIs(f, err, errBoom)
	assert.ErrorIs(f, item.Err(), kvqueue.ErrSettled)
	f.length(q, kvqueue.Length{Ready: 2})
	require.NoError(f, async.Scope(f.ctx, func(ctx context.Context) error {
		for _, want := range []string{"a", "b"} {
			items, err := q.Take(ctx, 2)
			require.NoError(f, err)
			assert.Equal(f, []string{want}, values(items)[:1])
		}
		return nil
	}))
	f.empty(q)
}

func takeWithoutScope(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a")
	_, err := q.Take(f.ctx, 1)
	assert.ErrorIs(f, err, kvqueue.ErrNoScope)
	_, err = q.TryTake(f.ctx, 1)
	assert.ErrorIs(f, err, kvqueue.ErrNoScope)
	assert.Equal(f, []string{"a"}, f.takes(q, 1))
}

func ackAndNack(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a", "b", "c", "d")
	require.NoError(f, q.Do(f.ctx, 4, func(_ context.Context, items []kvqueue.Item) error {
		require.Len(f, items, 4)
		assert.NoError(f, q.Ack(f.ctx, items[0]))
		assert.NoError(f, q.Nack(f.ctx, errBoom, items[1]))
		assert.NoError(f, q.Nack(f.ctx, nil, items[2]))
		assert.ErrorIs(f, q.Ack(f.ctx, items[0]), kvqueue.ErrSettled)
		assert.ErrorIs(f, q.Nack(f.ctx, errBoom, items[1]), kvqueue.ErrSettled)
		f.length(q, kvqueue.Length{Ready: 2, Claimed: 1})
		return nil
	}))
	for _, want := range []struct {
		value   string
		attempt int
	}{{"b", 2}, {"c", 1}} {
		require.NoError(f, q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(f, []string{want.value}, values(items))
			assert.Equal(f, want.attempt, items[0].Attempt)
			return nil
		}))
	}
	f.empty(q)
}
