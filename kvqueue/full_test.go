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

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// A full is a store that refuses what would add data, when it is full, as etcd does: with
// an error that does not say whether the transaction was done.
type full struct {
	kvqueue.KV
	is      atomic.Bool
	refused atomic.Int64
}

func (f *full) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	for _, w := range writes {
		if f.is.Load() && !w.Delete {
			f.refused.Add(1)
			return 0, fmt.Errorf("%w: %w", kvqueue.ErrNoSpace, kvqueue.ErrUnknown)
		}
	}
	return f.KV.Commit(ctx, guards, writes)
}

func TestAFullStoreIsNotAskedAgainWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &full{KV: newStore(t)}
		in, out := open(t, kv, "q"), open(t, kv, "q")
		_, err := in.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		require.NoError(t, out.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
			kv.is.Store(true)
			return nil // and is acknowledged on the full store
		}))

		_, err = kvqueue.Open(t.Context(), kv, "new")
		assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
		_, err = in.Enqueue(t.Context(), []byte("c"))
		assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
		assert.NotErrorIs(t, err, kvqueue.ErrUnknown, "the queue has looked what came of it")

		kv.refused.Store(0)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		got := make(chan string, 2)
		go func() {
			_ = out.Consume(ctx, 2, 1, func(_ context.Context, items []kvqueue.Item) error {
				got <- string(items[0].Value)
				return nil
			})
		}()
		time.Sleep(15 * time.Second)
		assert.Positive(t, kv.refused.Load())
		assert.Less(t, kv.refused.Load(), int64(100))
		kv.is.Store(false)
		assert.Equal(t, "b", <-got, "it goes on when there is room")
		require.NoError(t, ctx.Err())
		synctest.Wait()
	})
}

// Nothing can be claimed on a full store: a call that waits for items would wait for ever.
func TestOnAFullStoreNobodyWaitsForItems(t *testing.T) {
	for name, before := range map[string]bool{"items were claimed before": true, "the first claim": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := &full{KV: newStore(t)}
				q := open(t, kv, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				if before {
					require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
				}
				kv.is.Store(true)
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				for range 2 {
					err := q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil })
					assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
					assert.NotErrorIs(t, err, kvqueue.ErrUnknown, "nothing was claimed for the caller")
					require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
						_, err := q.Take(ctx, 1)
						assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
						_, err = q.TryTake(ctx, 1)
						return err
					}), kvqueue.ErrNoSpace)
				}
				kv.is.Store(false)
				require.NoError(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }))
			})
		})
	}
}

// A transaction may be on its way when the next one is refused, as the store is full: that
// the second was not done says nothing of the first.
func TestARefusalOfAFullStoreSaysNothingOfAnEarlierTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q")
		tries := 0
		net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
			if len(w) != 3 {
				return nil
			}
			switch tries++; tries {
			case 1:
				g, w = slices.Clone(g), withInner(w)
				time.AfterFunc(time.Minute, func() { _, _ = net.KV.Commit(context.Background(), g, w) })
				return kvqueue.ErrUnknown
			default:
				return fmt.Errorf("%w: %w", kvqueue.ErrNoSpace, kvqueue.ErrUnknown)
			}
		})
		_, err := q.Enqueue(t.Context(), []byte("a"))
		assert.ErrorIs(t, err, kvqueue.ErrNoSpace)
		assert.ErrorIs(t, err, kvqueue.ErrUnknown)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"a"}, all(t, q))
	})
}

// An acknowledgement makes room, also that of an item of a group: then its group goes on.
func TestAnItemOfAGroupIsAcknowledgedOnAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &full{KV: newStore(t)}
		q := open(t, kv, "q")
		add(t, q, "a.1", "a.2")
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			kv.is.Store(true)
			return q.Ack(ctx, items...)
		}))
		kv.is.Store(false)
		assert.Equal(t, []string{"a.2"}, try(t, q, 1, true))
		soundGroups(t, kv.KV, q)
	})
}
