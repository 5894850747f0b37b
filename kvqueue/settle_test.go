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

func TestAnItemThatIsBeingSettledIsSettledForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q", kvqueue.RetryDelay(time.Minute, time.Minute))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
			require.NoError(t, q.Nack(ctx, errFails, items[0])) // it goes back in a minute
			assert.ErrorIs(t, q.Ack(ctx, items[0]), kvqueue.ErrSettled)
			assert.ErrorIs(t, q.Ack(ctx, items...), kvqueue.ErrSettled)
			assert.ErrorIs(t, q.Commit(ctx, items, nil), kvqueue.ErrSettled)
			assert.NoError(t, items[1].Err(), "of those with it nothing was done")
			return q.Ack(ctx, items[1], items[1])
		}))
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Claimed: 1}, n)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"a"}, all(t, q))
	})
}

// One of two items was claimed in a session that has ended.
func TestItemsOfTwoSessionsAreSettledEachInItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q := open(t, net, "q", kvqueue.TTL(time.Second))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			var old []kvqueue.Item
			_ = async.Scope(ctx, func(ctx context.Context) error {
				old, err = q.Take(ctx, 1)
				require.NoError(t, err)
				net.off()
				<-ctx.Done()
				return nil
			})
			net.on()
			time.Sleep(5 * time.Second)
			fresh, err := q.Take(ctx, 1)
			require.NoError(t, err)
			assert.ErrorIs(t, q.Commit(ctx, append(old, fresh...), nil), kvqueue.ErrLost)
			assert.ErrorIs(t, old[0].Err(), kvqueue.ErrLost, "it stays so")
			assert.NoError(t, q.Ack(ctx, fresh...))
			return nil
		})
		time.Sleep(time.Second)
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 1}, n)
	})
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q", kvqueue.TTL(time.Second))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 1, func(ctx context.Context, old []kvqueue.Item) error {
			net.off()
			<-ctx.Done()
			net.on()
			ctx = context.WithoutCancel(ctx)
			assert.ErrorIs(t, old[0].Err(), kvqueue.ErrLost)
			return q.Do(ctx, 1, func(ctx context.Context, fresh []kvqueue.Item) error {
				assert.ErrorIs(t, q.Commit(ctx, append(old, fresh...), nil), kvqueue.ErrLost)
				assert.NoError(t, fresh[0].Err())
				assert.ErrorIs(t, q.Ack(ctx, append(old, fresh...)...), kvqueue.ErrLost)
				assert.ErrorIs(t, fresh[0].Err(), kvqueue.ErrSettled, "it was settled all the same")
				assert.ErrorIs(t, old[0].Err(), kvqueue.ErrLost)
				assert.ErrorIs(t, q.Nack(ctx, nil, old...), kvqueue.ErrLost, "it stays so")
				return nil
			})
		})
		assert.ErrorIs(t, err, kvqueue.ErrLost)
		time.Sleep(5 * time.Second)
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 1}, n)
	})
}

func TestCommitWantsItemsOfItsOwnHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, other := open(t, kv, "q"), open(t, kv, "other")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			var invalid *kvqueue.InvalidError
			assert.ErrorAs(t, other.Commit(ctx, items, nil), &invalid)
			assert.NoError(t, items[0].Err())
			assert.ErrorAs(t, q.Commit(ctx, []kvqueue.Item{{}}, nil), &invalid)
			assert.ErrorAs(t, q.Ack(ctx, kvqueue.Item{}), &invalid)
			assert.ErrorAs(t, q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Put([]byte("k"), nil); tx.Delete([]byte("k")) }), &invalid)
			return nil
		}))
	})
}

// A crammed store refuses what puts, and takes what deletes.
type crammed struct {
	kvqueue.KV
	is *atomic.Bool
}

func (f crammed) Commit(ctx context.Context, g []kvqueue.Guard, w []kvqueue.Write) (kvqueue.Rev, error) {
	for _, x := range w {
		if f.is.Load() && !x.Delete {
			return 0, kvqueue.ErrNoSpace
		}
	}
	return f.KV.Commit(ctx, g, w)
}

func TestOnAFullStoreItemsAreAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		q := open(t, crammed{newStore(t), &is}, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"), []byte("c"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 3, func(ctx context.Context, items []kvqueue.Item) error {
			is.Store(true)
			_, err := q.Enqueue(ctx, []byte("d"))
			assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
			assert.ErrorIs(t, q.Nack(ctx, errFails, items[0]), kvqueue.ErrNoSpace)
			assert.NoError(t, items[0].Err(), "it is claimed still")
			assert.ErrorIs(t, q.Commit(ctx, items[:1], func(tx *kvqueue.Tx) { tx.Put([]byte("k"), nil) }), kvqueue.ErrNoSpace)
			// In one transaction with what is refused.
			nacks := async.Execute(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, q.Nack(ctx, errFails, items[1]) })
			acks := async.Execute(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, q.Ack(ctx, items[2]) })
			_, err = nacks.Wait(ctx)
			assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
			_, err = acks.Wait(ctx)
			assert.NoError(t, err)
			return nil
		})
		assert.ErrorIs(t, err, kvqueue.ErrNoSpace, "of the one that was to go back")
		is.Store(false)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"b"}, all(t, q))
		assert.EqualValues(t, 2, q.Stats().Acked)
	})
}

// An item that the end of the scope could not give back goes back when there is room again.
func TestWhatAScopeCouldNotSettleIsSettledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		q := open(t, crammed{newStore(t), &is}, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { is.Store(true); return errFails })
		assert.ErrorIs(t, err, errFails)
		assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
		time.Sleep(time.Hour)
		is.Store(false)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a"}, all(t, q))
	})
}

// With default options an item that always fails keeps nobody from the items behind it, and is
// not tried for ever.
func TestAnItemThatAlwaysFailsDoesNotStopTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := kvqueue.Open(t.Context(), newStore(t), "q")
		require.NoError(t, err)
		for i := range 11 {
			_, err := q.Enqueue(t.Context(), []byte{byte(i)})
			require.NoError(t, err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var runs [11]atomic.Int64
		handle := func(_ context.Context, items []kvqueue.Item) error {
			i := items[0].Value[0]
			if runs[i].Add(1); i == 0 {
				return errFails
			}
			return nil
		}
		assert.ErrorIs(t, q.Consume(ctx, 1, 1, handle), context.DeadlineExceeded)
		assert.LessOrEqual(t, runs[0].Load(), int64(10), "runs of the one that fails")
		for i := range runs[1:] {
			assert.Equal(t, int64(1), runs[1+i].Load(), "item %d", 1+i)
		}
		ctx, stop = context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		assert.ErrorIs(t, q.Consume(ctx, 1, 1, handle), context.DeadlineExceeded)
		assert.LessOrEqual(t, runs[0].Load(), int64(25))
		dead, err := q.Dead(t.Context(), kvqueue.Key{}, 2)
		require.NoError(t, err)
		assert.Len(t, dead, 1)
		require.NoError(t, q.Close(t.Context()))
	})
}
