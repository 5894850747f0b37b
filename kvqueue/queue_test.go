package kvqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// open opens a handle that is closed at the end of the test.
// open opens a queue on which what has failed goes back at once.
func open(t *testing.T, kv kvqueue.KV, name string, options ...kvqueue.Option) *kvqueue.Queue {
	t.Helper()
	q, err := kvqueue.Open(t.Context(), kv, name, append([]kvqueue.Option{kvqueue.RetryDelay(0, 0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close(context.Background())) })
	return q
}

func newStore(t *testing.T, options ...memkv.Option) *memkv.Store {
	s := memkv.New(options...)
	t.Cleanup(s.Close)
	return s
}

func TestItemsComeInTheOrderInWhichTheyWereEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		one, two := open(t, kv, "q"), open(t, kv, "q")
		for i := range 100 {
			_, err := []*kvqueue.Queue{one, two}[i%2].Enqueue(t.Context(), fmt.Append(nil, i))
			require.NoError(t, err)
		}
		for i := range 100 {
			err := []*kvqueue.Queue{one, two}[i/3%2].Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
				assert.Equal(t, fmt.Sprint(i), string(items[0].Value))
				assert.Equal(t, 1, items[0].Attempt)
				return nil
			})
			require.NoError(t, err)
		}
		n, err := one.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{}, n)
	})
}

func TestAWaitingConsumerIsWokenByAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		in, out := open(t, kv, "q"), open(t, kv, "q")
		begin := time.Now()
		time.AfterFunc(time.Hour, func() { _, _ = in.Enqueue(context.Background(), []byte("x")) })
		require.NoError(t, out.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, "x", string(items[0].Value))
			return nil
		}))
		assert.Less(t, time.Since(begin), time.Hour+100*time.Millisecond)
	})
}

func TestManyConsumersTakeEachItemOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		const items = 500
		var mu sync.Mutex
		var got []string
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		for range 4 {
			q := open(t, kv, "q")
			all.Go(func() {
				_ = q.Consume(ctx, 4, 3, func(_ context.Context, items []kvqueue.Item) error {
					mu.Lock()
					defer mu.Unlock()
					if ctx.Err() != nil { // of one that was told to stop, and has given back what it had
						return ctx.Err()
					}
					for _, i := range items {
						got = append(got, string(i.Value))
					}
					if len(got) == 500 {
						stop()
					}
					return nil
				})
			})
		}
		in := open(t, kv, "q")
		for i := range items {
			_, err := in.Enqueue(t.Context(), fmt.Append(nil, i))
			require.NoError(t, err)
		}
		all.Wait()
		seen := map[string]bool{}
		for _, v := range got {
			assert.False(t, seen[v], v)
			seen[v] = true
		}
		assert.Len(t, seen, items)
	})
}

func TestAFailedItemGoesBackToItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q", kvqueue.MaxAttempts(3))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		boom := errors.New("boom")
		for attempt := 1; attempt <= 3; attempt++ {
			err := q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
				assert.Equal(t, "a", string(items[0].Value))
				assert.Equal(t, attempt, items[0].Attempt)
				return boom
			})
			require.ErrorIs(t, err, boom)
		}
		require.NoError(t, q.Do(t.Context(), 5, func(_ context.Context, items []kvqueue.Item) error {
			assert.Len(t, items, 1)
			assert.Equal(t, "b", string(items[0].Value))
			return nil
		}))
		dead, err := q.Dead(t.Context(), kvqueue.Key{}, 10)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		assert.Equal(t, "boom", dead[0].Why)
		n, err := q.Requeue(t.Context(), dead[0].Key)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		items, err := q.Peek(t.Context(), 5)
		require.NoError(t, err)
		require.Len(t, items, 1)
		assert.Equal(t, "a", string(items[0].Value))
	})
}

func TestItemsOfASessionThatEndedComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		cut := newCut(kv)
		dies, other := open(t, cut, "q", kvqueue.TTL(5*time.Second)), open(t, kv, "q", kvqueue.TTL(5*time.Second))
		_, err := other.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		begin := time.Now()
		var lost time.Duration
		go func() {
			err := dies.Do(context.Background(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
				cut.off()
				<-ctx.Done()
				lost = time.Since(begin)
				assert.ErrorIs(t, context.Cause(ctx), kvqueue.ErrLost)
				return nil
			})
			assert.ErrorIs(t, err, kvqueue.ErrLost)
		}()
		synctest.Wait()
		require.NoError(t, other.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, 2, items[0].Attempt)
			assert.Greater(t, time.Since(begin), lost, "the context died before the item was given to another")
			return nil
		}))
		assert.NotZero(t, lost)
		assert.EqualValues(t, 1, dies.Stats().Lost)
		assert.Less(t, time.Since(begin), 6*time.Second)
		cut.on()
	})
}
