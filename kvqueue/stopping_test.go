package kvqueue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// The outcome of calls that are cut short, and of those that come after.

// The caller has its buffer again when Enqueue returns, though the items are sent later.
func TestTheBuffersOfAnEnqueueAreTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q")
		sent := make(chan struct{})
		before(net, "/d/", func() { <-sent })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		buffer := []byte("what was enqueued")
		_, err := q.Enqueue(ctx, buffer)
		assert.ErrorIs(t, err, kvqueue.ErrUnknown)
		copy(buffer, "something else ...")
		close(sent)
		synctest.Wait()
		assert.Equal(t, []string{"what was enqueued"}, all(t, q))
	})
}

// The handler does not wait for its Nack, which fails after the handler has ended: nobody but Do, or the end of the
// scope, would settle the item. The end of a scope waits for a while only, and somebody else settles the item then.
func TestAnItemThatSomebodySettlesAtTheEndOfItsScopeIsNotForgotten(t *testing.T) {
	for name, take := range map[string]func(q *kvqueue.Queue, f func(ctx context.Context, items []kvqueue.Item) error) error{
		"Do": func(q *kvqueue.Queue, f func(context.Context, []kvqueue.Item) error) error {
			return q.Do(context.Background(), 1, f)
		},
		"Take": func(q *kvqueue.Queue, f func(context.Context, []kvqueue.Item) error) error {
			return async.Scope(context.Background(), func(ctx context.Context) error {
				items, err := q.Take(ctx, 1)
				if err != nil {
					return err
				}
				return f(ctx, items)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newCut(newStore(t))
				q := open(t, net, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				ended := make(chan struct{})
				time.AfterFunc(8*time.Second, func() { close(ended) })
				fails := true
				net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
					if fails && slices.ContainsFunc(w, func(w kvqueue.Write) bool { return w.Delete && strings.Contains(string(w.Key), "/w/") }) {
						<-ended
						fails = false
						return kvqueue.ErrNoSpace
					}
					return nil
				})
				err = take(q, func(ctx context.Context, items []kvqueue.Item) error {
					hurry, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					return q.Nack(hurry, errFails, items...)
				})
				assert.ErrorIs(t, err, kvqueue.ErrUnknown)
				time.Sleep(time.Minute)
				assert.Equal(t, []string{"a"}, all(t, q))
			})
		})
	}
}

// The Ack was done, and its answer was lost for longer than the queue tries.
func TestWhatAnAckMayHaveDoneIsNotTakenForLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := &answerless{cut: newCut(newStore(t))}
		q := open(t, net, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			net.is = true
			assert.ErrorIs(t, q.Ack(ctx, items...), kvqueue.ErrUnknown)
			net.is = false
			return nil
		}))
		s := q.Stats()
		assert.EqualValues(t, 1, s.Acked)
		assert.Zero(t, s.Lost)
	})
	synctest.Test(t, func(t *testing.T) {
		net := &answerless{cut: newCut(newStore(t))}
		q := open(t, net, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			net.is = true
			assert.ErrorIs(t, q.Nack(ctx, nil, items...), kvqueue.ErrUnknown)
			net.is = false
			assert.ErrorIs(t, q.Ack(ctx, items...), kvqueue.ErrSettled, "it went back")
			return nil
		}))
		s := q.Stats()
		assert.Zero(t, s.Acked)
		assert.EqualValues(t, 1, s.Returned)
		assert.Equal(t, []string{"a"}, all(t, q))
	})
}

// An answerless store does a transaction, and gives no answer any more, to that and to others.
type answerless struct {
	*cut
	is   bool
	gone bool
}

func (a *answerless) Read(ctx context.Context, r ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if a.is && a.gone {
		return nil, 0, errFails
	}
	return a.cut.Read(ctx, r...)
}

func (a *answerless) Commit(ctx context.Context, g []kvqueue.Guard, w []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := a.cut.Commit(ctx, g, w)
	if a.is {
		a.gone = true
		return 0, kvqueue.ErrUnknown
	}
	return rev, err
}

// The first Commit is done while the second is tried: the effects of the second are not.
func TestACommitDoesNotTakeAnEarlierOneForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		tries := 0
		net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
			if !slices.ContainsFunc(w, func(w kvqueue.Write) bool { return strings.HasPrefix(string(w.Key), "effect") }) {
				return nil
			}
			if tries++; tries == 1 {
				g, w = slices.Clone(g), withInner(w)
				time.AfterFunc(time.Minute/30, func() { _, _ = net.KV.Commit(context.Background(), g, w) })
			}
			return kvqueue.ErrUnknown
		})
		err = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			hurry, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			assert.ErrorIs(t, q.Commit(hurry, items, func(tx *kvqueue.Tx) { tx.Put([]byte("effect 1"), nil) }), kvqueue.ErrUnknown)
			return q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Put([]byte("effect 2"), nil) })
		})
		assert.ErrorIs(t, err, kvqueue.ErrUnknown)
		results, _, err := net.KV.Read(t.Context(), kvqueue.Range{Begin: []byte("effect"), End: []byte("effecu")})
		require.NoError(t, err)
		require.Len(t, results[0].Pairs, 1)
		assert.Equal(t, "effect 1", string(results[0].Pairs[0].Key))
	})
}

// With a place that nobody has, items would come to a process that does not want them.
func TestACallThatDoesNotWaitLeavesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		waits, q := open(t, kv, "q"), open(t, kv, "q")
		go func() {
			_ = waits.Do(context.Background(), 1, func(context.Context, []kvqueue.Item) error { return nil })
		}()
		time.Sleep(time.Second)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			items, err := q.TryTake(ctx, 1)
			assert.Empty(t, items)
			return err
		}))
		time.Sleep(100 * time.Millisecond)
		assert.Zero(t, keys(t, kv, "r"))
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		synctest.Wait()
	})
}

func TestAfterAShutdownCallsReturn(t *testing.T) {
	for name, used := range map[string]bool{"used before": true, "not used": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t), "q")
				if used {
					_, err := q.Enqueue(t.Context(), []byte("a"))
					require.NoError(t, err)
					require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
				}
				require.NoError(t, q.ShutDown(t.Context()))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for range 3 {
					assert.ErrorIs(t, q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), kvqueue.ErrClosed)
					_, err := q.Enqueue(ctx, []byte("b"))
					assert.ErrorIs(t, err, kvqueue.ErrClosed)
				}
				assert.NoError(t, q.Consume(ctx, 2, 1, func(context.Context, []kvqueue.Item) error { return nil }))
			})
		})
	}
}

// The store is away, and the context of Close has no end.
func TestCloseWaitsForTheStoreNoLongerThanTheSessionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q, err := kvqueue.Open(t.Context(), net, "q", kvqueue.TTL(5*time.Second))
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		net.off()
		begin := time.Now()
		err = q.Close(context.Background())
		assert.ErrorContains(t, err, "comes back when the session ends")
		assert.Equal(t, 5*time.Second, time.Since(begin))
		assert.NoError(t, q.Close(context.Background()))
		net.on()
	})
}

// The store goes away while a session is begun: who wanted it is told at once.
func TestACallDoesNotWaitForTheEndOfASessionThatCameToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q")
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if slices.ContainsFunc(w, func(w kvqueue.Write) bool { return strings.Contains(string(w.Key), "/l/") }) {
				net.off()
				return errFails
			}
			return nil
		})
		begin := time.Now()
		err := q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil })
		assert.ErrorIs(t, err, errFails)
		assert.Zero(t, time.Since(begin))
		net.intercept(nil)
		net.on()
	})
}

// An item is acknowledged between the look at its key and that at its payload.
func TestAnItemThatIsGoneIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.MaxAttempts(1))
		slow := &ackedMeanwhile{KV: kv}
		other := open(t, slow, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		slow.then = func() {
			assert.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		}
		items, err := other.Peek(t.Context(), 1)
		require.NoError(t, err)
		require.Len(t, items, 1)
		assert.Equal(t, "b", string(items[0].Value))

		require.Error(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errors.New("dies") }))
		slow.then = func() {
			letters, err := q.Dead(t.Context(), kvqueue.Key{}, 1)
			require.NoError(t, err)
			_, err = q.Requeue(t.Context(), letters[0].Key)
			require.NoError(t, err)
			require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		}
		letters, err := other.Dead(t.Context(), kvqueue.Key{}, 10)
		require.NoError(t, err)
		assert.Empty(t, letters)
	})
}

// ackedMeanwhile has something happen before a payload is read.
type ackedMeanwhile struct {
	kvqueue.KV
	then func()
}

func (a *ackedMeanwhile) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if then := a.then; then != nil && strings.Contains(string(ranges[0].Begin), "/d/") && ranges[0].End == nil {
		a.then = nil
		then()
	}
	return a.KV.Read(ctx, ranges...)
}

// A worker that is told to stop as it is served has items, and must not go without them.
func TestAWorkerThatIsStoppedAsItIsServedKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancel atomic.Pointer[context.CancelFunc]
		q := open(t, newStore(t), "q", kvqueue.Observe(func(r kvqueue.Report) {
			if c := cancel.Load(); r.Kind == kvqueue.Claimed && c != nil {
				go (*c)()
			}
		}))
		for i := range 400 {
			_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			cancel.Store(&stop)
			_ = q.Consume(ctx, 1, 1, func(context.Context, []kvqueue.Item) error { return nil })
			cancel.Store(nil)
			time.Sleep(time.Second)
			n, err := q.Len(t.Context())
			require.NoError(t, err)
			require.Zero(t, n.Claimed, "of round %d", i)
			for range n.Ready {
				require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
			}
		}
	})
}

// The answer is there, and the context has ended, too: the answer counts.
func TestAnAnswerCountsThoughTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		open, err := kvqueue.Answered(ctx, errFails)
		assert.False(t, open)
		assert.Equal(t, errFails, err)
	}
}

// A settlement after a shutdown is answered at once, and is lost: nobody renews the session.
func TestAfterAShutdownASettlementIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := kvqueue.Open(t.Context(), newStore(t), "q")
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		err = q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return q.ShutDown(t.Context()) })
		assert.ErrorIs(t, err, kvqueue.ErrLost)
		assert.ErrorIs(t, err, kvqueue.ErrClosed)
		require.NoError(t, q.Close(t.Context()))
	})
}
