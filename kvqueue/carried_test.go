package kvqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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

// claimsOf and acksOf say how many items a transaction claims and acknowledges.
func claimsOf(writes []kvqueue.Write) int { return count(writes, "/w/", false) }
func acksOf(writes []kvqueue.Write) int   { return count(writes, "/d/", true) }

func count(writes []kvqueue.Write, kind string, deletes bool) (n int) {
	for _, w := range writes {
		if w.Delete == deletes && bytes.Contains(w.Key, []byte(kind)) {
			n++
		}
	}
	return n
}

// numbered are n items, each its number.
func numbered(n int) [][]byte {
	items := make([][]byte, n)
	for i := range items {
		items[i] = fmt.Append(nil, i)
	}
	return items
}

// drain consumes until so many items were acknowledged, and returns how often each was handled.
func drain(ctx context.Context, q *kvqueue.Queue, workers, items int) map[string]int {
	ctx, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	var mu sync.Mutex
	runs := map[string]int{}
	var all sync.WaitGroup
	collect(ctx, &all, q, workers, 1, func(of []kvqueue.Item) {
		mu.Lock()
		defer mu.Unlock()
		runs[string(of[0].Value)]++
	})
	for q.Stats().Acked < int64(items) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	stop()
	all.Wait()
	return runs
}

// Consumers acknowledge what they have and claim the next in one transaction, as far as it holds both.
func TestTheClaimOfTheNextItemAcknowledgesTheLast(t *testing.T) {
	for _, workers := range []int{1, 32, 80} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rounds = 20
				items := rounds * workers
				net := newCut(newStore(t))
				net.delay = func() time.Duration { return time.Millisecond }
				q := open(t, net, "q")
				_, err := q.Enqueue(t.Context(), numbered(items)...)
				require.NoError(t, err)
				var together, alone atomic.Int64
				net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
					if n := acksOf(w); claimsOf(w) > 0 {
						together.Add(int64(n))
					} else {
						alone.Add(int64(n))
					}
					return nil
				})
				assert.Len(t, drain(t.Context(), q, workers, items), items)
				t.Logf("%d acknowledgements were carried, %d had a transaction of their own", together.Load(), alone.Load())
				assert.EqualValues(t, items, together.Load()+alone.Load())
				if workers <= 32 {
					assert.LessOrEqual(t, alone.Load(), int64(2*workers), "only the last")
				}
			})
		})
	}
}

// Whatever becomes of such a transaction, each item is acknowledged once, and nothing is lost.
func TestAnAcknowledgementThatIsCarriedIsDoneOnceWhateverBecomesOfTheClaim(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const items = 100
				var n atomic.Int64
				kv := newStore(t, memkv.Faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
					if claimsOf(w) > 0 && acksOf(w) > 0 && n.Add(1)%3 == 0 {
						return fault
					}
					return memkv.None
				}))
				q := open(t, kv, "q")
				_, err := q.Enqueue(t.Context(), numbered(items)...)
				require.NoError(t, err)
				runs := drain(t.Context(), q, 4, items)
				assert.Positive(t, n.Load())
				for _, item := range numbered(items) {
					assert.Equal(t, 1, runs[string(item)], "%s", item)
				}
				time.Sleep(time.Minute)
				left, err := q.Len(t.Context())
				require.NoError(t, err)
				assert.Equal(t, kvqueue.Length{}, left)
				assert.EqualValues(t, items, q.Stats().Acked)
			})
		})
	}
}

// A store that takes no claim any more takes the acknowledgements.
func TestAnAcknowledgementDoesNotShareTheFateOfAClaimThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		q := open(t, crammed{newStore(t), &is}, "q")
		_, err := q.Enqueue(t.Context(), numbered(8)...)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		var begun atomic.Int64
		four := make(chan struct{})
		collect(ctx, &all, q, 4, 1, func([]kvqueue.Item) {
			if begun.Add(1) == 4 { // all that there are
				is.Store(true)
				close(four)
			}
			<-four
		})
		time.Sleep(500 * time.Millisecond)
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 4}, n)
		stop()
		all.Wait()
	})
}

// An acknowledgement does not wait for items, nor for the others that want some.
func TestAnAcknowledgementWaitsForNoItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		_, err := q.Enqueue(t.Context(), numbered(3)...)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
			items, err := q.Take(scope, 3)
			require.NoError(t, err)
			var waiting sync.WaitGroup
			collect(ctx, &waiting, q, 2, 1, func([]kvqueue.Item) {})
			for _, wait := range []time.Duration{0, time.Second, 10 * time.Second} { // as the others begin to wait, and later
				time.Sleep(wait)
				begin := time.Now()
				require.NoError(t, q.Ack(scope, items[0]))
				assert.Less(t, time.Since(begin), 50*time.Millisecond)
				items = items[1:]
			}
			stop()
			waiting.Wait()
			return nil
		}))
	})
}

// A worker that ends as the next items are on their way to it gives them back.
func TestAWorkerThatEndsKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := kvqueue.Open(t.Context(), newStore(t), "q", kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.Acked {
				panic("the observer")
			}
		}))
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), numbered(3)...)
		require.NoError(t, err)
		var broken *async.PanicError
		assert.ErrorAs(t, q.Consume(t.Context(), 1, 1, func(context.Context, []kvqueue.Item) error { return nil }), &broken)
		time.Sleep(time.Second)
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 2}, n)
		assert.ErrorAs(t, q.Close(t.Context()), &broken)
	})
}

// A claim that is lost takes neither the next items with it nor the acknowledgements of others.
func TestALostClaimSpoilsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), numbered(6)...)
		require.NoError(t, err)
		var mu sync.Mutex
		var got []string
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		collect(ctx, &all, q, 3, 1, func(items []kvqueue.Item) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(items[0].Value))
			if len(got) == 2 { // somebody deletes its claim
				takeAway(t, kv, items[0].Key)
			}
		})
		time.Sleep(time.Minute)
		stop()
		all.Wait()
		slices.Sort(got)
		assert.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, got)
		assert.EqualValues(t, 5, q.Stats().Acked)
	})
}

// takeAway deletes the claim of an item.
func takeAway(t *testing.T, kv kvqueue.KV, k kvqueue.Key) {
	t.Helper()
	results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/w/"), End: []byte("kvq/q/w0")})
	require.NoError(t, err)
	for _, p := range results[0].Pairs {
		if bytes.HasSuffix(p.Key, k[:]) {
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: p.Key, Delete: true}})
			require.NoError(t, err)
		}
	}
}
