package kvqueue_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A late is a store that keeps one transaction back, and does it after a read that has found
// the first places of a queue empty.
type late struct {
	kvqueue.KV
	once sync.Once
	hold chan struct{} // closed when the transaction may go on
	held chan struct{} // closed when there is one
	then func()        // is called when that read was done
}

func (l *late) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	for _, w := range writes {
		if bytes.Equal(w.Value, []byte("first")) {
			close(l.held)
			<-l.hold
		}
	}
	return l.KV.Commit(ctx, guards, writes)
}

func (l *late) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	results, rev, err := l.KV.Read(ctx, ranges...)
	for i, r := range ranges {
		_, hint, is := bytes.Cut(r.Begin, []byte("/q/"))
		if is && len(hint) == 8 && l.then != nil && len(results[i].Pairs) == 0 && binary.BigEndian.Uint64(hint) < 100 {
			l.once.Do(l.then)
		}
	}
	return results, rev, err
}

// A look for the first item may take several reads, if the floor lies far behind. An item that
// came to a place which the first of them has found empty is before those of later places.
func TestAnItemThatComesToAnEarlierPlaceWhileTheQueueIsReadIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		slow := &late{KV: kv, hold: make(chan struct{}), held: make(chan struct{})}
		producer, other := open(t, slow, "orders"), open(t, kv, "orders")
		added := make(chan error)
		go func() {
			_, err := producer.Enqueue(context.Background(), []byte("first"))
			added <- err
		}()
		<-slow.held
		for range 400 {
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("other")}})
			require.NoError(t, err)
		}
		consumer := &late{KV: kv}
		q := open(t, consumer, "orders")
		consumer.then = func() {
			close(slow.hold)
			require.NoError(t, <-added)
			_, err := other.Enqueue(context.Background(), []byte("second"))
			require.NoError(t, err)
		}
		require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, "first", string(items[0].Value))
			return nil
		}))
	})
}

// A look for many items is not cut short as the one before was for one.
func TestABatchIsNotCutShortByALookForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"), []byte("c"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		for range 300 { // others use the store
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("other")}})
			require.NoError(t, err)
		}
		_, err = q.Enqueue(t.Context(), []byte("d"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 10, func(_ context.Context, items []kvqueue.Item) error {
			assert.Len(t, items, 3)
			return nil
		}))
	})
}
