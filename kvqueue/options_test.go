package kvqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// The functions that are given as options may panic, and call the queue.

func TestAPanicOfAnOptionDoesNoHarm(t *testing.T) {
	for name, option := range map[string]kvqueue.Option{
		"Observe": kvqueue.Observe(func(kvqueue.Report) { panic(errFails) }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, err := kvqueue.Open(t.Context(), newStore(t), "q", option)
				require.NoError(t, err)
				for range 2 { // also when it has happened before
					_, err = q.Enqueue(t.Context(), []byte("a"), []byte("b"))
					require.NoError(t, err)
					assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
					for range 2 {
						require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
					}
					n, err := q.Len(t.Context())
					require.NoError(t, err)
					assert.Equal(t, kvqueue.Length{}, n)
				}
				_, err = q.Enqueue(t.Context(), []byte("c"))
				require.NoError(t, err)
				var broken *async.PanicError
				err = q.Consume(t.Context(), 2, 1, func(context.Context, []kvqueue.Item) error { return nil })
				require.ErrorAs(t, err, &broken)
				assert.Equal(t, errFails, broken.Value)
				assert.Contains(t, string(broken.Stack), "options_test.go")
				assert.Empty(t, all(t, q))
				for range 2 {
					assert.ErrorAs(t, q.Close(t.Context()), &broken)
				}
			})
		})
	}
}

// The observer is told by a call that begins the next session.
func TestAnObserverMayCallTheQueueThatItObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *kvqueue.Queue
		lost := 0
		q = open(t, newStore(t), "q", kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.Lost {
				lost += r.Items
				_, err := q.Enqueue(context.Background(), []byte("a claim was lost"))
				assert.NoError(t, err)
			}
		}))
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
			q.Expire()
			_, err := q.Enqueue(context.WithoutCancel(ctx), []byte("b"))
			return err
		})
		assert.ErrorIs(t, err, kvqueue.ErrLost)
		synctest.Wait() // a task of its own tells the observer
		assert.Equal(t, 1, lost)
		assert.Contains(t, all(t, q), "a claim was lost")
	})
}

// The numbers of the events add up to what became of the items.
func TestEventsSayWhatBecameOfEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		dies, q, to := open(t, net, "q", kvqueue.MaxCrashes(2)), open(t, kv, "q"), open(t, kv, "to")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		for range 2 { // two processes go away with it
			_ = dies.Do(t.Context(), 1, func(ctx context.Context, _ []kvqueue.Item) error {
				_ = async.Scope(t.Context(), func(ctx context.Context) error {
					_, err := q.TryTake(ctx, 1) // so that it looks after the others
					return err
				})
				net.endSession()
				<-ctx.Done()
				return nil
			})
			time.Sleep(time.Second)
		}
		s := q.Stats()
		assert.EqualValues(t, 1, s.Reaped)
		assert.EqualValues(t, 1, s.Died, "the second time it is a dead letter")

		_, err = q.Enqueue(t.Context(), []byte("b"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			return q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Enqueue(to, []byte("c"), []byte("d")) })
		}))
		assert.EqualValues(t, 2, to.Stats().Enqueued)
	})
}

// A claim that was taken away is lost when that is found out, and not once more with its session.
func TestALostClaimIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		var lost atomic.Int64
		q := open(t, net, "q", kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.Lost {
				lost.Add(int64(r.Items))
			}
		}))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		_ = q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
			results, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("kvq/q/w/"), End: []byte("kvq/q/w0"), Limit: 1})
			require.NoError(t, err)
			_, err = kv.Commit(ctx, nil, []kvqueue.Write{{Key: results[0].Pairs[0].Key, Delete: true}})
			require.NoError(t, err)
			assert.ErrorIs(t, q.Ack(ctx, items[0]), kvqueue.ErrLost)
			net.endSession()
			<-ctx.Done()
			return nil
		})
		synctest.Wait() // the observer is told behind the call
		assert.EqualValues(t, 2, lost.Load(), "one of them was taken away, and one was lost with the session")
	})
}
