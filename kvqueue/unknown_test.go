package kvqueue_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// The tests of C4: what became of a transaction whose answer was lost is read back before
// anything is repeated.

// once has the first transactions that write a key with this in it go wrong so.
func once(part string, left ...memkv.Fault) memkv.Option {
	var mu sync.Mutex
	return faults(func(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range writes {
			if len(left) > 0 && bytes.Contains(w.Key, []byte(part)) {
				f := left[0]
				left = left[1:]
				return f
			}
		}
		return memkv.None
	})
}

func all(t *testing.T, q *kvqueue.Queue) (values []string) {
	t.Helper()
	items, err := q.Peek(t.Context(), 1000)
	require.NoError(t, err)
	for _, i := range items {
		values = append(values, string(i.Value))
	}
	return values
}

func TestAnEnqueueWhoseAnswerWasLostIsDoneOnce(t *testing.T) {
	for name, outcomes := range map[string][]memkv.Fault{
		"done":     {memkv.Unanswered},
		"not done": {memkv.Dropped},
		"late":     {memkv.Late},
		"many":     {memkv.Late, memkv.Dropped, memkv.Conflict, memkv.Unanswered},
		"twice":    {memkv.Late, memkv.Late},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t, once("/d/", outcomes...)), "q")
				a, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				b, err := q.Enqueue(t.Context(), []byte("b"))
				require.NoError(t, err)
				time.Sleep(time.Second)
				assert.Equal(t, []string{"a", "b"}, all(t, q))
				items, err := q.Peek(t.Context(), 2)
				require.NoError(t, err)
				assert.Equal(t, []kvqueue.Key{a.First, b.First}, []kvqueue.Key{items[0].Key, items[1].Key})
			})
		})
	}
}

// The session ends before it can be found out what became of the transaction.
func TestAnEnqueueOfWhichNothingCanBeKnownIsNotRepeated(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Dropped, memkv.Unanswered} {
		synctest.Test(t, func(t *testing.T) {
			armed := false
			var net *cut
			net = newCut(newStore(t, faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
				if len(w) == 3 && !armed { // the n key, the payload and the item
					armed = true
					net.off()
					return fault
				}
				return memkv.None
			})))
			q := open(t, net, "q", kvqueue.TTL(time.Second))
			time.AfterFunc(5*time.Second, net.on)
			_, err := q.Enqueue(t.Context(), []byte("a"))
			assert.ErrorIs(t, err, kvqueue.ErrUnknown)
			time.Sleep(time.Minute)
			if fault == memkv.Dropped {
				assert.Empty(t, all(t, q))
			} else {
				assert.Equal(t, []string{"a"}, all(t, q))
			}
		})
	}
}

// The caller has gone when the answer is lost, and the next batch begins.
func TestABatchIsNotTakenForAnotherThatCameToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 0
		reads := &failingReads{KV: newStore(t, once("/d/", memkv.Unanswered)), fails: &fails}
		q := open(t, reads, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, all(t, q))
	})
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q", kvqueue.TTL(10*time.Minute))
		first := true
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if len(w) == 3 && first { // it is done, and nothing can be read for longer than the queue tries
				first = false
				_, err := net.KV.Commit(t.Context(), nil, withInner(w))
				assert.NoError(t, err)
				net.off()
				time.AfterFunc(5*time.Minute, net.on)
				return kvqueue.ErrUnknown
			}
			return nil
		})
		_, err := q.Enqueue(t.Context(), []byte("a"))
		assert.ErrorIs(t, err, kvqueue.ErrUnknown)
		_, err = q.Enqueue(t.Context(), []byte("lost too"))
		assert.Error(t, err)
		time.Sleep(6 * time.Minute)
		_, err = q.Enqueue(t.Context(), []byte("b"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, all(t, q))
	})
}

// failingReads has a number of reads fail.
type failingReads struct {
	kvqueue.KV
	fails *int
}

func (r *failingReads) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if *r.fails > 0 {
		*r.fails--
		return nil, 0, errFails
	}
	return r.KV.Read(ctx, ranges...)
}

func (r *failingReads) Commit(ctx context.Context, g []kvqueue.Guard, w []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := r.KV.Commit(ctx, g, w)
	if err != nil {
		*r.fails = 3 // what became of it is not to be read for a while
	}
	return rev, err
}

func TestASettlementWhoseAnswerWasLostIsDoneOnce(t *testing.T) {
	for name, outcomes := range map[string][]memkv.Fault{
		"done": {memkv.Unanswered}, "not done": {memkv.Dropped}, "late": {memkv.Late}, "many": {memkv.Late, memkv.Late, memkv.Dropped, memkv.Unanswered},
	} {
		for _, verdict := range []string{"ack", "nack", "back", "commit"} {
			t.Run(name+" "+verdict, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					armed := false
					left := outcomes
					kv := newStore(t, faults(func(_ []kvqueue.Guard, _ []kvqueue.Write) memkv.Fault {
						if !armed || len(left) == 0 {
							return memkv.None
						}
						f := left[0]
						left = left[1:]
						return f
					}))
					q := open(t, kv, "q")
					_, err := q.Enqueue(t.Context(), []byte("a"))
					require.NoError(t, err)
					require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
						armed = true
						switch verdict {
						case "ack":
							return q.Ack(ctx, items...)
						case "nack":
							return q.Nack(ctx, errFails, items...)
						case "back":
							return q.Nack(ctx, nil, items...)
						default:
							return q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Enqueue(q, []byte("b")); tx.Put([]byte("effect"), nil) })
						}
					}))
					time.Sleep(time.Second)
					want := map[string]string{"ack": "", "nack": "a", "back": "a", "commit": "b"}[verdict]
					assert.Equal(t, want, strings.Join(all(t, q), " "))
					n, err := q.Len(t.Context())
					require.NoError(t, err)
					assert.Zero(t, n.Claimed)
				})
			})
		}
	}
}

func TestARequeueWhoseAnswerWasLostIsDoneOnce(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Unanswered, memkv.Dropped, memkv.Late, memkv.Conflict} {
		synctest.Test(t, func(t *testing.T) {
			armed := false
			q := open(t, newStore(t, faults(func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault {
				if armed {
					armed = false
					return fault
				}
				return memkv.None
			})), "q", kvqueue.MaxAttempts(1))
			pos, err := q.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
			require.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
			armed = true
			n, err := q.Requeue(t.Context(), pos.First)
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			time.Sleep(time.Second)
			assert.Equal(t, []string{"a"}, all(t, q))
		})
	}
}

// The handler's context ends while the answer to its Commit is lost: what was claimed is
// settled by the end of the scope.
func TestACommitOfWhichNothingIsKnownLeavesItsItemsToTheScope(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Unanswered, memkv.Dropped, memkv.Late} {
		synctest.Test(t, func(t *testing.T) {
			armed := false
			q := open(t, newStore(t, faults(func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault {
				if armed {
					return fault
				}
				return memkv.None
			})), "q")
			_, err := q.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
			err = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
				armed = true
				defer func() { armed = false }()
				hurry, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				err := q.Commit(hurry, items, func(tx *kvqueue.Tx) {
					tx.Enqueue(q, []byte("b"))
					tx.If(kvqueue.Guard{Key: []byte("never"), Is: kvqueue.Absent})
				})
				if fault == memkv.Unanswered {
					assert.NoError(t, err, "it is read back")
				} else {
					assert.ErrorIs(t, err, kvqueue.ErrUnknown)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
				return err
			})
			assert.Equal(t, fault == memkv.Unanswered, err == nil)
			time.Sleep(time.Second)
			want := "a"
			if fault == memkv.Unanswered {
				want = "b"
			}
			assert.Equal(t, []string{want}, all(t, q))
			n, err := q.Len(t.Context())
			require.NoError(t, err)
			assert.Equal(t, kvqueue.Length{Ready: 1}, n)
		})
	}
}
