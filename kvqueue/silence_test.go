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

// A store that answers each try with a conflict is not said to be silent.
func TestAStoreThatAnswersWithConflictsIsNotSilent(t *testing.T) {
	for _, least := range []time.Duration{3 * time.Second, time.Hour} {
		for name, call := range map[string]func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error{
			"Enqueue": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
				_, err := q.Enqueue(ctx, []byte("b"))
				return err
			},
			"Ack": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error { return q.Ack(ctx, items...) },
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newCut(newStore(t))
					q := open(t, net, "q", kvqueue.TTL(time.Minute))
					_, err := q.Enqueue(t.Context(), []byte("a"))
					require.NoError(t, err)
					require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
						net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error { return kvqueue.ErrConflict })
						for i := range 10 { // at any time of a pause
							short, stop := context.WithTimeout(ctx, least+time.Duration(i)*100*time.Millisecond)
							defer stop()
							err := call(short, q, items)
							require.Error(t, err)
							assert.NotContains(t, err.Error(), "answer for")
							assert.NotContains(t, err.Error(), "answered")
						}
						net.intercept(nil)
						return nil
					}))
				})
			})
		}
	}
}

// An observer that takes long is not a store that is silent.
func TestAStoreIsNotSilentWhileAnObserverTakesLong(t *testing.T) {
	for _, kind := range []kvqueue.EventKind{kvqueue.Claimed, kvqueue.Acked, kvqueue.Enqueued} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := false
				q := open(t, newStore(t), "q", kvqueue.TTL(time.Hour), kvqueue.Observe(func(r kvqueue.Report) {
					if r.Kind == kind && slow {
						time.Sleep(8 * time.Second)
					}
				}))
				waits(t, q)()
				slow = true
				go func() {
					_, _ = q.Enqueue(t.Context(), []byte("a"))
					_ = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error { return q.Ack(ctx, items...) })
				}()
				for range 40 {
					err := within(t.Context(), func(ctx context.Context) error {
						return q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil })
					})
					if err != nil {
						assert.Equal(t, context.DeadlineExceeded, err)
					}
				}
				assert.Zero(t, q.Stats().StoreFailed)
				assert.NoError(t, q.Trouble())
			})
		})
	}
}

// The observer is told that the store answers again when it has heard that it did not.
func TestTheEndOfATroubleIsToldAfterItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []kvqueue.EventKind
		kv := &hung{KV: newStore(t)}
		q := open(t, kv, "q", kvqueue.TTL(time.Hour), kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.StoreFailed {
				time.Sleep(3 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Kind == kvqueue.StoreFailed || r.Kind == kvqueue.StoreBack {
				told = append(told, r.Kind)
			}
		}))
		kv.is.Store(true)
		time.AfterFunc(6*time.Second, func() { kv.is.Store(false) })
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		assert.ErrorIs(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), context.DeadlineExceeded)
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []kvqueue.EventKind{kvqueue.StoreFailed, kvqueue.StoreBack}, told)
	})
}
