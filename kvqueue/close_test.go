package kvqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// keys returns how many keys of the queue there are of a kind.
func keys(t *testing.T, kv kvqueue.KV, kind string) int {
	t.Helper()
	results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/" + kind + "/"), End: []byte("kvq/q/" + kind + "0")})
	require.NoError(t, err)
	return len(results[0].Pairs)
}

func TestAHandleThatIsClosedLeavesNoKeyOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, err := kvqueue.Open(t.Context(), kv, "q")
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		assert.Equal(t, 1, keys(t, kv, "s"))
		require.NoError(t, q.Close(t.Context()))
		for _, kind := range []string{"s", "l", "n", "r", "w"} {
			assert.Zero(t, keys(t, kv, kind), kind)
		}
	})
}

// What it has claimed still is found by the next handle.
func TestTheItemsOfAHandleThatIsClosedComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.RetryDelay(async.Every(time.Hour)))
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
		require.NoError(t, q.Close(t.Context()))
		assert.Equal(t, 1, keys(t, kv, "s"))
		require.NoError(t, open(t, kv, "q").Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, 2, items[0].Attempt)
			return nil
		}))
		time.Sleep(time.Second)
		assert.Equal(t, 1, keys(t, kv, "s"), "that of the handle that is open")
	})
}

func TestNoRetryDelayOutlivesItsHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.RetryDelay(async.Every(time.Hour)))
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
		delayed := q.Delayed()
		assert.Equal(t, 1, delayed())
		require.NoError(t, q.Close(t.Context()))
		assert.Zero(t, delayed())
	})
}
