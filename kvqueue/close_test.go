package kvqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// An item that it has claimed still is found by the next handle.
func TestTheItemsOfAHandleThatIsClosedComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, err := kvqueue.Open(t.Context(), kv, "q")
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		began, ended := make(chan bool), make(chan error)
		go func() {
			ended <- q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
				close(began)
				<-ctx.Done()
				return nil
			})
		}()
		<-began
		require.NoError(t, q.Close(t.Context()))
		assert.ErrorIs(t, <-ended, kvqueue.ErrLost)
		assert.Equal(t, 1, keys(t, kv, "s"))
		require.NoError(t, open(t, kv, "q").Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, 2, items[0].Attempt)
			return nil
		}))
		time.Sleep(time.Second)
		assert.Equal(t, 1, keys(t, kv, "s"), "that of the handle that is open")
	})
}

// An item that waits for its next run goes back when the handle is closed, as a failure: others
// would take it for one whose process has crashed.
func TestAnItemThatWaitsForItsNextRunGoesBackAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		var lost atomic.Int64
		q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.RetryDelay(time.Hour, time.Hour), kvqueue.MaxAttempts(2), kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.Lost {
				lost.Add(1)
			}
		}))
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
		require.NoError(t, q.Close(t.Context()))
		assert.Zero(t, lost.Load())
		assert.Zero(t, keys(t, kv, "s"))
		next := open(t, kv, "q")
		assert.ErrorIs(t, next.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
		dead, err := next.Dead(t.Context(), kvqueue.Key{}, 1)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		assert.Equal(t, []int{2, 0}, []int{dead[0].Failures, dead[0].Crashes})
	})
}

func TestNoRetryDelayOutlivesItsHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.RetryDelay(time.Hour, time.Hour))
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
