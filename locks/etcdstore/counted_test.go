package etcdstore

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
)

// counted counts the requests of stores.
type counted struct {
	clientv3.KV
	reads, txns *atomic.Int64
	before      func() // if it is set, it is called once before the next transaction
}

func count(s *Store) *counted {
	c := &counted{KV: s.kv, reads: new(atomic.Int64), txns: new(atomic.Int64)}
	s.kv = c
	return c
}

func (c *counted) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.reads.Add(1)
	return c.KV.Get(ctx, key, opts...)
}

func (c *counted) Txn(ctx context.Context) clientv3.Txn {
	c.txns.Add(1)
	if f := c.before; f != nil {
		c.before = nil
		f()
	}
	return c.KV.Txn(ctx)
}

// heard counts the answers to the watches of stores, but the first of each.
type heard struct {
	clientv3.Watcher
	n *atomic.Int64
}

func (h heard) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for answer := range h.Watcher.Watch(ctx, key, opts...) {
			if !answer.Created {
				h.n.Add(1)
			}
			select {
			case out <- answer:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// another opens a store of its own on the server of a store, as another process does.
func (s *Store) another(t *testing.T) *Store {
	t.Helper()
	other, err := locks.Open(t.Context(), "etcd://"+s.client.Endpoints()[0][len("http://"):])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	return other.(*Store)
}

// waits has a store ask for a lock that it is not granted yet.
func (s *Store) waits(t *testing.T, q locks.Request) {
	t.Helper()
	turn, err := s.Acquire(t.Context(), name, []locks.Request{q})
	require.NoError(t, err)
	require.NoError(t, turn.Answers[0].Err)
	require.False(t, turn.Answers[0].Granted)
}

func (s *Store) releases(t *testing.T, id string) {
	t.Helper()
	released, err := s.Release(t.Context(), name, locks.Ref{ID: id}, nil)
	require.NoError(t, err)
	require.True(t, released)
}
