package kvqueue_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

var errDenied = errors.New("permission denied")

// A denied store refuses every call while it is.
type denied struct {
	kvqueue.KV
	is atomic.Bool
}

func (d *denied) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if d.is.Load() {
		return nil, 0, errDenied
	}
	return d.KV.Read(ctx, ranges...)
}

func (d *denied) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if d.is.Load() {
		return 0, errDenied
	}
	return d.KV.Commit(ctx, guards, writes)
}

func (d *denied) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	if d.is.Load() {
		return func(yield func(kvqueue.Event, error) bool) { yield(kvqueue.Event{}, errDenied) }
	}
	return d.KV.Watch(ctx, after, prefixes...)
}

// An empty queue and a store in trouble never look alike: whoever waits is told the last error
// of the store, the observer hears when the trouble begins and when it ends, and Stats count.
func TestAStoreInTroubleIsSaid(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, q *kvqueue.Queue){
		"a handle that is new": func(*testing.T, *kvqueue.Queue) {},
		"a handle that has looked": func(t *testing.T, q *kvqueue.Queue) {
			items, err := tryTake(t, q)
			require.NoError(t, err)
			require.Empty(t, items)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []string
				kv := &denied{KV: newStore(t)}
				q := open(t, kv, "q", kvqueue.Observe(func(r kvqueue.Report) {
					mu.Lock()
					defer mu.Unlock()
					if r.Kind == kvqueue.StoreFailed || r.Kind == kvqueue.StoreBack {
						told = append(told, r.Kind.String()+" "+r.Why)
					}
				}))
				before(t, q)

				kv.is.Store(true)
				_, err := tryTake(t, q)
				assert.ErrorIs(t, err, errDenied, "TryTake says so without an end of ctx")
				within := func(f func(ctx context.Context) error) error {
					ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
					defer stop()
					return f(ctx)
				}
				fail := func(context.Context, []kvqueue.Item) error { return errors.New("there is no item") }
				assert.ErrorIs(t, within(func(ctx context.Context) error { return q.Do(ctx, 1, fail) }), errDenied)
				err = within(func(ctx context.Context) error { return q.Consume(ctx, 2, 1, fail) })
				assert.ErrorIs(t, err, errDenied)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, int64(1), q.Stats().StoreFailed)
				assert.ErrorContains(t, q.Trouble(), errDenied.Error())

				kv.is.Store(false)
				time.Sleep(10 * time.Second)
				items, err := tryTake(t, q)
				assert.NoError(t, err)
				assert.Empty(t, items)
				assert.NoError(t, q.Trouble())
				err = within(func(ctx context.Context) error { return q.Do(ctx, 1, fail) })
				assert.Equal(t, context.DeadlineExceeded, err, "an empty queue")
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, []string{"store failed " + errDenied.Error(), "store back "}, told)
			})
		})
	}
}

// A broken store is said by every call, when its ctx ends at the latest.
func TestEveryCallSaysThatTheStoreIsBroken(t *testing.T) {
	type call = func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error
	nothing := func(context.Context, []kvqueue.Item) error { return nil }
	for name, f := range map[string]call{
		"Enqueue": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.Enqueue(ctx, []byte("a"))
			return err
		},
		"Transact": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			return q.Transact(ctx, func(tx *kvqueue.Tx) { tx.Enqueue(q, []byte("a")) })
		},
		"Do": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error { return q.Do(ctx, 1, nothing) },
		"Consume": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			return q.Consume(ctx, 2, 1, nothing)
		},
		"Take": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.Take(ctx, 1)
			return err
		},
		"TryTake": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.TryTake(ctx, 1)
			return err
		},
		"Ack": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error { return q.Ack(ctx, items...) },
		"Nack": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			return q.Nack(ctx, errFails, items...)
		},
		"Commit": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			return q.Commit(ctx, items, nil)
		},
		"Peek": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.Peek(ctx, 1)
			return err
		},
		"Len": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error { _, err := q.Len(ctx); return err },
		"Dead": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.Dead(ctx, kvqueue.Key{}, 1)
			return err
		},
		"Requeue": func(ctx context.Context, q *kvqueue.Queue, items []kvqueue.Item) error {
			_, err := q.Requeue(ctx, items[0].Key)
			return err
		},
		"Audit": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.Audit(ctx)
			return err
		},
		"Configure": func(ctx context.Context, q *kvqueue.Queue, _ []kvqueue.Item) error {
			_, err := q.Configure(ctx, kvqueue.MaxAttempts(2))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := &denied{KV: newStore(t)}
				q := open(t, kv, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
					kv.is.Store(true)
					within, stop := context.WithTimeout(ctx, 5*time.Second)
					defer stop()
					begin := time.Now()
					assert.ErrorIs(t, f(within, q, items), errDenied)
					assert.LessOrEqual(t, time.Since(begin), 5*time.Second)
					kv.is.Store(false)
					time.Sleep(30 * time.Second) // what was on its way is done
					return nil
				}))
			})
		})
	}
	_, err := kvqueue.Open(t.Context(), denies(), "q")
	assert.ErrorIs(t, err, errDenied)
}

func denies() *denied {
	d := &denied{KV: memkv.New()}
	d.is.Store(true)
	return d
}

// tryTake asks for an item in a scope of its own, which it gives back.
func tryTake(t *testing.T, q *kvqueue.Queue) (items []kvqueue.Item, err error) {
	t.Helper()
	_ = async.Scope(t.Context(), func(ctx context.Context) error {
		items, err = q.TryTake(ctx, 1)
		return q.Nack(ctx, nil, items...)
	})
	return items, err
}

// A key that nobody understands is skipped, named by Audit, and stops nothing.
func TestAKeyThatNobodyUnderstandsStopsNothing(t *testing.T) {
	for _, key := range []string{"r/garbage", "l/garbage", "s/garbage", "q/x", "q/garbage that is long enough", "w/x", "w/garbage", "x/garbage", "d/garbage", "n/garbage", "zz"} {
		t.Run(key, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/" + key), Value: []byte("?")}})
				require.NoError(t, err)
				q := open(t, kv, "q")
				late := "kvq/q/" + key + "!" // and one that comes while the handle watches
				for i := range 5 {
					_, err := q.Enqueue(t.Context(), []byte{byte(i)})
					require.NoError(t, err)
				}
				var got []byte
				for range 5 {
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					require.NoError(t, q.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
						got = append(got, items[0].Value...)
						_, err := kv.Commit(ctx, nil, []kvqueue.Write{{Key: []byte(late), Value: []byte("?")}})
						return err
					}))
					stop()
				}
				assert.Equal(t, []byte{0, 1, 2, 3, 4}, got)
				items, err := tryTake(t, q)
				assert.NoError(t, err)
				assert.Empty(t, items)
				_, err = q.Peek(t.Context(), 5)
				assert.NoError(t, err)
				_, err = q.Len(t.Context())
				assert.NoError(t, err)
				_, err = q.Dead(t.Context(), kvqueue.Key{}, 5)
				assert.NoError(t, err)
				audit, err := q.Audit(t.Context())
				require.NoError(t, err)
				for _, k := range []string{"kvq/q/" + key, late} {
					assert.True(t, slices.ContainsFunc(audit.Faults, func(f string) bool { return strings.Contains(f, strconv.Quote(k)) }), "%q is not named: %q", k, audit.Faults)
				}
			})
		})
	}
}
