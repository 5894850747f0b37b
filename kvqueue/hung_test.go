package kvqueue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// A hung store answers no call while it hangs, until the end of its ctx.
type hung struct {
	kvqueue.KV
	is atomic.Bool
}

func (h *hung) hang(ctx context.Context) error {
	for h.is.Load() && ctx.Err() == nil {
		t := time.NewTimer(10 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
	return ctx.Err()
}

func (h *hung) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if err := h.hang(ctx); err != nil {
		return 0, err
	}
	return h.KV.Commit(ctx, guards, writes)
}

func (h *hung) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	if err := h.hang(ctx); err != nil {
		return nil, err
	}
	return h.KV.Session(ctx, ttl)
}

// A store that does not answer has no last error. Calls whose ctx ends say that it does not answer,
// and after some seconds it is trouble.
func TestAStoreThatDoesNotAnswerIsSaid(t *testing.T) {
	nothing := func(context.Context, []kvqueue.Item) error { return nil }
	enqueue := func(ctx context.Context, q *kvqueue.Queue) error {
		_, err := q.Enqueue(ctx, []byte("a"))
		return err
	}
	calls := map[string]func(ctx context.Context, q *kvqueue.Queue) error{
		"Enqueue": enqueue,
		"Transact": func(ctx context.Context, q *kvqueue.Queue) error {
			return q.Transact(ctx, func(tx *kvqueue.Tx) { tx.Put([]byte("k"), nil) })
		},
		"Do":      func(ctx context.Context, q *kvqueue.Queue) error { return q.Do(ctx, 1, nothing) },
		"Consume": func(ctx context.Context, q *kvqueue.Queue) error { return q.Consume(ctx, 2, 1, nothing) },
		"TryTake": func(ctx context.Context, q *kvqueue.Queue) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				_, err := q.TryTake(ctx, 1)
				return err
			})
		},
	}
	for name, call := range calls {
		for _, used := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " used ", used), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := &hung{KV: newStore(t)}
					var failed, back atomic.Int64
					q := open(t, kv, "q", kvqueue.TTL(time.Hour), kvqueue.Observe(func(r kvqueue.Report) {
						switch r.Kind {
						case kvqueue.StoreFailed:
							failed.Add(1)
						case kvqueue.StoreBack:
							back.Add(1)
						}
					}))
					if used {
						require.NoError(t, enqueue(t.Context(), q))
						require.NoError(t, q.Do(t.Context(), 1, nothing))
						require.NoError(t, enqueue(t.Context(), q))
						time.Sleep(10 * time.Second)
					}
					kv.is.Store(true)
					for range 3 {
						ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
						err := call(ctx, q)
						stop()
						assert.ErrorIs(t, err, context.DeadlineExceeded)
						assert.ErrorContains(t, err, "the store has not answered for ")
					}
					if used && name == "Do" {
						assert.ErrorContains(t, q.Trouble(), "the store has not answered for ")
						assert.Equal(t, int64(1), failed.Load())
					}
					kv.is.Store(false)
					time.Sleep(time.Minute)
					assert.NoError(t, q.Trouble())
					assert.Equal(t, failed.Load(), back.Load())
				})
			})
		}
	}
}

// A closedStore was closed by this process while a handle is open.
type closedStore struct {
	kvqueue.KV
	is atomic.Bool
}

func (c *closedStore) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if c.is.Load() {
		return 0, fmt.Errorf("%w: the store", kvqueue.ErrClosed)
	}
	return c.KV.Commit(ctx, guards, writes)
}

// A program that closes its store has no trouble with it.
func TestAStoreThatTheProgramHasClosedIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &closedStore{KV: newStore(t)}
		var told atomic.Int64
		q := open(t, kv, "q", kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.StoreFailed {
				told.Add(1)
			}
		}))
		kv.is.Store(true)
		within, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		assert.Error(t, q.Do(within, 1, func(context.Context, []kvqueue.Item) error { return nil }))
		assert.Zero(t, told.Load())
		assert.NoError(t, q.Trouble())
		kv.is.Store(false)
	})
}
