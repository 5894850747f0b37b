package kvqueue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A call after one that has returned ErrUnknown says what has become of the item: a loop that tries
// again does not take it for done while nothing is written.
func TestACallAfterOneOfUnknownOutcomeWaitsForIt(t *testing.T) {
	ack := func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error { return q.Ack(ctx, items...) }
	nack := func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
		return q.Nack(ctx, nil, items...)
	}
	commit := func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
		return q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Enqueue(q, []byte("never")) })
	}
	for name, c := range map[string]struct {
		first, then func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error
		same        bool
	}{
		"ack and ack": {ack, ack, true}, "nack and nack": {nack, nack, true},
		"ack and nack": {ack, nack, false}, "ack and commit": {ack, commit, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := &denied{KV: newStore(t)}
				q := open(t, kv, "q", kvqueue.TTL(time.Hour))
				_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
					within := func(f func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error) error {
						ctx, stop := context.WithTimeout(ctx, 5*time.Second)
						defer stop()
						return f(ctx, q, items)
					}
					kv.is.Store(true)
					assert.ErrorIs(t, within(c.first), kvqueue.ErrUnknown)
					err := within(c.then)
					assert.ErrorIs(t, err, kvqueue.ErrUnknown)
					assert.ErrorIs(t, err, errDenied)
					assert.NotErrorIs(t, err, kvqueue.ErrSettled)
					time.AfterFunc(time.Second, func() { kv.is.Store(false) })
					if err = within(c.then); c.same {
						assert.NoError(t, err)
					} else {
						assert.ErrorIs(t, err, kvqueue.ErrSettled)
					}
					assert.ErrorIs(t, within(c.then), kvqueue.ErrSettled)
					return nil
				}))
				n, err := q.Len(t.Context())
				require.NoError(t, err)
				want := kvqueue.Length{}
				if name == "nack and nack" {
					want.Ready = 2
				}
				assert.Equal(t, want, n)
			})
		})
	}
}

// A call that comes to nothing is tried again by the next call, and not by the end of the scope alone.
func TestACallAfterOneThatCameToNothingTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newCut(newStore(t))
		q := open(t, kv, "q", kvqueue.TTL(time.Minute))
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		_ = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			within, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			kv.intercept(func([]kvqueue.Guard, []kvqueue.Write) error { return kvqueue.ErrUnknown })
			assert.ErrorIs(t, q.Ack(within, items...), kvqueue.ErrUnknown)
			within, stop = context.WithTimeout(ctx, 50*time.Second)
			defer stop()
			time.AfterFunc(40*time.Second, func() { kv.intercept(nil) })
			assert.NoError(t, q.Ack(within, items...))
			assert.ErrorIs(t, q.Ack(within, items...), kvqueue.ErrSettled)
			return nil
		})
		assert.Empty(t, all(t, q))
	})
}

// A Nack of unknown outcome was done, late, and the answer of the Ack that follows is lost, too: nobody knows which of the
// two has settled the item, and the Ack does not say that it has.
func TestAnAckAfterANackThatWasDoneDoesNotSayThatItHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		net := newCut(store)
		q := open(t, net, "q", kvqueue.TTL(time.Minute))
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		_ = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			var mu sync.Mutex
			var guards []kvqueue.Guard
			var writes []kvqueue.Write
			net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
				mu.Lock()
				defer mu.Unlock()
				guards, writes = g, w
				return kvqueue.ErrUnknown
			})
			assert.ErrorIs(t, q.Nack(ctx, nil, items...), kvqueue.ErrUnknown)
			_, err := store.Commit(ctx, guards, withInner(writes))
			require.NoError(t, err)
			n := 0
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
				if n++; n == 1 {
					return kvqueue.ErrUnknown
				}
				return nil
			})
			err = q.Ack(ctx, items...)
			net.intercept(nil)
			assert.ErrorIs(t, err, kvqueue.ErrSettled)
			assert.ErrorIs(t, err, kvqueue.ErrUnknown)
			return nil
		})
	})
}
