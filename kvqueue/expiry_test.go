package kvqueue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// consumed takes all that is ready, and acknowledges it.
func consumed(t *testing.T, q *kvqueue.Queue) {
	t.Helper()
	for {
		items, err := q.Peek(t.Context(), 1)
		require.NoError(t, err)
		if len(items) == 0 {
			return
		}
		require.NoError(t, q.Do(t.Context(), 50, func(context.Context, []kvqueue.Item) error { return nil }))
	}
}

// An id stands for the retention, though its item is gone, and goes within twice that time: whoever has added it, and
// whoever claims items.
func TestAnIDStandsForItsRetentionAndGoesThen(t *testing.T) {
	for _, retention := range []time.Duration{time.Second, time.Minute, 24 * time.Hour} {
		for name, adds := range map[string]bool{"its handle is there": true, "only a consumer is there": false} {
			t.Run(fmt.Sprint(retention, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := newStore(t)
					consumer := open(t, kv, "q", kvqueue.Retention(retention))
					producer, err := kvqueue.Open(t.Context(), kv, "q")
					require.NoError(t, err)
					var first [150]kvqueue.Key
					for i := range first {
						first[i] = addOnce(t, producer, fmt.Sprint(i), fmt.Sprint(i))
					}
					synctest.Wait()
					consumed(t, consumer)
					if adds {
						require.NoError(t, consumer.Close(t.Context()))
					}
					if !adds {
						require.NoError(t, producer.Close(t.Context()))
					}
					time.Sleep(retention)
					assert.Equal(t, 150, keys(t, kv, "i"))
					assert.Equal(t, 150, keys(t, kv, "j"))
					sound(t, open(t, kv, "q"))
					time.Sleep(retention + 10*time.Second)
					assert.Zero(t, keys(t, kv, "i"))
					assert.Zero(t, keys(t, kv, "j"))
					assert.NoError(t, producer.Close(t.Context()))
					assert.NotContains(t, first, addOnce(t, open(t, kv, "q"), "anew", "1"))
				})
			})
		}
	}
}

// An id stands as long as its item does: ready, claimed or dead.
func TestAnIDStandsAsLongAsItsItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.Retention(time.Minute), kvqueue.MaxAttempts(1))
		dead := addOnce(t, q, "dead", "dead")
		failOnce(t, q)
		claimed, ready := addOnce(t, q, "claimed", "claimed"), addOnce(t, q, "ready", "ready")
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
			time.Sleep(time.Hour)
			assert.Equal(t, claimed, addOnce(t, q, "", "claimed"))
			return nil
		}))
		assert.Equal(t, ready, addOnce(t, q, "", "ready"))
		assert.Equal(t, dead, addOnce(t, q, "", "dead"))
		n, err := q.Requeue(t.Context(), dead)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.Equal(t, dead, addOnce(t, q, "", "dead"))
		assert.Equal(t, []string{"dead", "ready"}, all(t, q))
		consumed(t, q)
		time.Sleep(time.Hour)
		assert.Zero(t, keys(t, kv, "i"))
		sound(t, q)
	})
}

// Processes come and go, none lives for as long as a tenth of the retention, and ids go all the same.
func TestIDsGoThoughNoProcessLivesForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		most := 0
		for i := range 300 { // for ten hours
			q, err := kvqueue.Open(t.Context(), kv, "q", kvqueue.Retention(time.Hour))
			require.NoError(t, err)
			addOnce(t, q, "a", fmt.Sprint(i))
			consumed(t, q)
			time.Sleep(2 * time.Minute)
			require.NoError(t, q.Close(t.Context()))
			most = max(most, keys(t, kv, "i"))
		}
		assert.Less(t, most, 60)
		assert.Greater(t, most, 30)
	})
}

// A queue without ids has nothing read, or written, for their sake, once there is a session.
func TestAQueueWithoutIDsPaysNothingForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &marksRead{KV: newStore(t)}
		q := open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		consumed(t, q)
		time.Sleep(24 * time.Hour)
		results, _, err := kv.KV.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/t"), End: []byte("kvq/q/v")})
		require.NoError(t, err)
		assert.Empty(t, results[0].Pairs)
		assert.LessOrEqual(t, kv.times.Load(), int64(80), "a claimer looks whether there are marks, some times in a tenth of the retention")
		assert.LessOrEqual(t, kv.ids.Load(), int64(4), "Open, and the beginning of a session, look for those of a store that was mirrored")
	})
}

// A marksRead store counts how often marks are read, and ids.
type marksRead struct {
	kvqueue.KV
	times, ids atomic.Int64
}

func (m *marksRead) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	for _, r := range ranges {
		switch {
		case bytes.HasSuffix(r.Begin, []byte("/t")):
			m.times.Add(1)
		case bytes.Contains(r.Begin, []byte("/i/")), bytes.Contains(r.Begin, []byte("/j/")):
			m.ids.Add(1)
		}
	}
	return m.KV.Read(ctx, ranges...)
}

// A longer retention is for the ids that stand, too. A shorter one holds when a tenth of the old one is over.
func TestTheRetentionIsThatOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		ttl := kvqueue.TTL(10 * time.Minute)
		q, admin := open(t, kv, "q", kvqueue.Retention(time.Hour), ttl), open(t, kv, "q", ttl)
		assert.Equal(t, 24*time.Hour, open(t, kv, "other").Policy().Retention)
		first := addOnce(t, q, "a", "one")
		consumed(t, q)
		time.Sleep(50 * time.Minute)
		p, err := admin.Configure(t.Context(), kvqueue.Retention(100*time.Hour))
		require.NoError(t, err)
		assert.Equal(t, 100*time.Hour, p.Retention)
		time.Sleep(100 * time.Hour)
		assert.Equal(t, first, addOnce(t, q, "a", "one"))
		_, err = admin.Configure(t.Context(), kvqueue.Retention(time.Minute))
		require.NoError(t, err)
		time.Sleep(15 * time.Hour)
		assert.Zero(t, keys(t, kv, "i"))
		for _, d := range []time.Duration{0, time.Second - 1, 366 * 24 * time.Hour} {
			_, err = admin.Configure(t.Context(), kvqueue.Retention(d))
			assert.ErrorAs(t, err, new(*kvqueue.InvalidError))
		}
	})
}

// A program that knows no ids has written the policy.
func TestAPolicyWithoutARetentionHasTheUsualOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		text := `{"maxAttempts":7,"maxCrashes":0,"retryDelay":0,"maxRetryDelay":0}`
		_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/p"), Value: []byte(text)}})
		require.NoError(t, err)
		q := open(t, kv, "q")
		assert.Equal(t, kvqueue.Policy{MaxAttempts: 7, Retention: 24 * time.Hour}, q.Policy())
		sound(t, q)
	})
}

// A handle has seen that an item is gone, and stands still before it lets the id go. Another does so, and the id is
// added anew: it stands.
func TestAnIDThatWasAddedAnewIsNotLetGoByOneWhoIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		late := open(t, net, "q", kvqueue.Retention(time.Minute))
		first := addOnce(t, late, "a", "one")
		early := open(t, kv, "q")
		consumed(t, late)
		var anew kvqueue.Key
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if !writesIn(w, "/j/") || !w[0].Delete {
				return nil
			}
			net.intercept(nil)
			_, err := kv.Commit(t.Context(), nil, w) // as another does it
			assert.NoError(t, err)
			anew = addOnce(t, early, "b", "one")
			return nil
		})
		time.Sleep(10 * time.Minute)
		require.NotZero(t, anew)
		assert.NotEqual(t, first, anew)
		assert.Equal(t, anew, addOnce(t, late, "b", "one"), "its item is there")
		sound(t, early)
	})
}

// A process whose clock is wrong has made each mark. No id goes before its time by that, and none stays for ever.
func TestAClockThatIsWrongMakesNoIDOlder(t *testing.T) {
	for _, by := range []time.Duration{-1000 * time.Hour, 1000 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t)
			q := open(t, kv, "q", kvqueue.Retention(time.Hour))
			first := addOnce(t, q, "a", "one")
			synctest.Wait() // the first mark is made beside the call
			consumed(t, q)
			for range 240 {
				if keys(t, kv, "i") > 0 {
					shiftMarks(t, kv, by)
				}
				if time.Sleep(time.Minute / 2); keys(t, kv, "i") == 0 {
					break
				}
			}
			assert.GreaterOrEqual(t, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), time.Hour)
			assert.Zero(t, keys(t, kv, "i"))
			assert.NotEqual(t, first, addOnce(t, q, "a", "one"))
		})
	}
}

// shiftMarks writes the marks as if another clock had said when the last was made.
func shiftMarks(t *testing.T, kv kvqueue.KV, by time.Duration) {
	t.Helper()
	results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/t")})
	require.NoError(t, err)
	var marks map[string]any
	require.NoError(t, json.Unmarshal(results[0].Pairs[0].Value, &marks))
	marks["at"] = time.Now().Add(by)
	text, err := json.Marshal(marks)
	require.NoError(t, err)
	_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/t"), Value: text}})
	require.NoError(t, err)
}

// Whatever goes wrong with the transactions that make marks and let ids go, no id goes before its time, and
// all do in the end.
func TestIDsGoThoughTransactionsGoWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		kv := newStore(t, memkv.Faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
			if writesIn(w, "/d/") || !writesIn(w, "/j/") && !writesIn(w, "q/t") {
				return memkv.None
			}
			return []memkv.Fault{memkv.Dropped, memkv.Late, memkv.None, memkv.Conflict, memkv.Unanswered}[n.Add(1)%5]
		}))
		one, two := open(t, kv, "q", kvqueue.Retention(time.Minute)), open(t, kv, "q")
		for i := range 100 {
			addOnce(t, one, "a", fmt.Sprint(i))
		}
		addOnce(t, two, "a", "of two")
		consumed(t, two)
		time.Sleep(time.Minute)
		assert.Equal(t, 101, keys(t, kv, "i"))
		time.Sleep(10 * time.Minute)
		assert.Zero(t, keys(t, kv, "i"))
		sound(t, one)
	})
}

// The sessions of a file end when its machine starts again. No id becomes older by it.
func TestASessionThatEndsTooEarlyMakesNoIDOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.Retention(time.Hour))
		first := addOnce(t, q, "a", "one")
		consumed(t, q)
		for range 58 {
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("kvq/q/u"), Delete: true}})
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		assert.Equal(t, first, addOnce(t, q, "a", "one"))
		time.Sleep(2 * time.Hour)
		assert.Zero(t, keys(t, kv, "i"))
	})
}
