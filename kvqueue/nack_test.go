package kvqueue_test

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// The tests of items that a handler wanted to give back while the store failed: the end of the handler
// must not acknowledge them, or they are lost.

// A deafStore answers no transaction that ends a claim while it is deaf. Sessions are renewed.
type deafStore struct {
	kvqueue.KV
	deaf, full atomic.Bool
}

func newDeafStore(t *testing.T) *deafStore {
	d := &deafStore{}
	d.KV = newStore(t, faults(func(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
		if d.deaf.Load() && slices.ContainsFunc(writes, endsClaim) {
			return memkv.Dropped
		}
		return memkv.None
	}))
	return d
}

func endsClaim(w kvqueue.Write) bool { return w.Delete && bytes.Contains(w.Key, []byte("/w/")) }

func (d *deafStore) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if d.full.Load() && slices.ContainsFunc(writes, endsClaim) {
		return 0, kvqueue.ErrNoSpace
	}
	return d.KV.Commit(ctx, guards, writes)
}

// nackThatFails is a handler that wants to give its item back, while the store does not do that.
func nackThatFails(d *deafStore, q *kvqueue.Queue, why error, then func(ctx context.Context, item kvqueue.Item)) func(context.Context, []kvqueue.Item) error {
	return func(ctx context.Context, items []kvqueue.Item) error {
		_ = q.Nack(ctx, why, items[0])
		d.deaf.Store(false)
		d.full.Store(false)
		if then != nil {
			then(ctx, items[0])
		}
		return nil
	}
}

func TestAnItemThatCouldNotBeGivenBackIsNotAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		why     error
		trouble func(d *deafStore)
		attempt int // of the next run
	}{
		"an answer is lost, as a failure": {errFails, func(d *deafStore) { d.deaf.Store(true) }, 2},
		"an answer is lost, for another":  {nil, func(d *deafStore) { d.deaf.Store(true) }, 1},
		"the store is full, as a failure": {errFails, func(d *deafStore) { d.full.Store(true) }, 2},
		"the store is full, for another":  {nil, func(d *deafStore) { d.full.Store(true) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDeafStore(t)
				q := open(t, d, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				c.trouble(d)
				assert.NoError(t, q.Do(t.Context(), 1, nackThatFails(d, q, c.why, nil)))
				require.Equal(t, []string{"a"}, all(t, q))
				assert.EqualValues(t, 0, q.Stats().Acked)
				assert.Equal(t, c.attempt, nextAttempt(t, d))
			})
		})
	}
}

// The caller of Nack does not wait for the answer, and the handler ends before there is one: Do waits for it.
func TestAnItemThatIsBeingGivenBackIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeafStore(t)
		q := open(t, d, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		d.deaf.Store(true)
		time.AfterFunc(12*time.Second, func() { d.deaf.Store(false) }) // the Nack is given up before
		assert.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			assert.ErrorIs(t, q.Nack(short, errFails, items[0]), kvqueue.ErrUnknown)
			return nil
		}))
		require.Equal(t, []string{"a"}, all(t, q))
		assert.Equal(t, 2, nextAttempt(t, d))
	})
}

// The last wish of a handler counts.
func TestAnItemIsAcknowledgedAfterItCouldNotBeGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeafStore(t)
		q := open(t, d, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		d.full.Store(true)
		assert.NoError(t, q.Do(t.Context(), 1, nackThatFails(d, q, errFails, func(ctx context.Context, item kvqueue.Item) {
			assert.NoError(t, q.Ack(ctx, item))
		})))
		assert.Equal(t, []string{"b"}, all(t, q))
		d.full.Store(true)
		assert.NoError(t, q.Do(t.Context(), 1, nackThatFails(d, q, errFails, func(ctx context.Context, item kvqueue.Item) {
			d.full.Store(true)
			assert.ErrorIs(t, q.Ack(ctx, item), kvqueue.ErrNoSpace)
			d.full.Store(false)
		})))
		assert.Empty(t, all(t, q))
	})
}

// A handler that has failed spends an attempt, whatever it wanted before.
func TestAFailureCountsAfterAnItemCouldNotBeGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeafStore(t)
		q := open(t, d, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			d.full.Store(true)
			assert.ErrorIs(t, q.Nack(ctx, nil, items[0]), kvqueue.ErrNoSpace)
			d.full.Store(false)
			return errFails
		}), errFails)
		assert.Equal(t, 2, nextAttempt(t, d))
	})
}
