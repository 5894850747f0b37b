package kvqueue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// buried makes dead letters, one in each minute, that have failed for two reasons in turns, and returns their keys.
func buried(t *testing.T, kv kvqueue.KV, letters int) (q *kvqueue.Queue, keys []kvqueue.Key) {
	t.Helper()
	q = open(t, kv, "q", kvqueue.MaxAttempts(1))
	for i := range letters {
		pos, err := q.Enqueue(t.Context(), fmt.Append(nil, i))
		require.NoError(t, err)
		keys = append(keys, pos.First)
		why := errors.New([]string{"printer: out of paper", "printer: on fire"}[i%2])
		require.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return why }), why)
		time.Sleep(time.Minute)
	}
	return q, keys
}

// foundDead returns the values of the dead letters that a filter means.
func foundDead(t *testing.T, q *kvqueue.Queue, f kvqueue.Filter) (values []string) {
	t.Helper()
	for l, err := range q.FindDead(t.Context(), f) {
		require.NoError(t, err)
		values = append(values, string(l.Value))
	}
	return values
}

func TestDeadLettersAreFoundDiscardedAndRequeuedByAFilter(t *testing.T) {
	for name, c := range map[string]struct {
		filter func(now time.Time, keys []kvqueue.Key) kvqueue.Filter
		want   []string
	}{
		"all":      {func(time.Time, []kvqueue.Key) kvqueue.Filter { return kvqueue.Filter{} }, []string{"0", "1", "2", "3", "4", "5"}},
		"by error": {func(time.Time, []kvqueue.Key) kvqueue.Filter { return kvqueue.Filter{Why: "fire"} }, []string{"1", "3", "5"}},
		"no error": {func(time.Time, []kvqueue.Key) kvqueue.Filter { return kvqueue.Filter{Why: "ink"} }, nil},
		"older": {func(now time.Time, _ []kvqueue.Key) kvqueue.Filter {
			return kvqueue.Filter{Before: now.Add(-4*time.Minute - 1)}
		}, []string{"0", "1"}},
		"younger": {func(now time.Time, _ []kvqueue.Key) kvqueue.Filter {
			return kvqueue.Filter{After: now.Add(-90 * time.Second)}
		}, []string{"5"}},
		"at most": {func(time.Time, []kvqueue.Key) kvqueue.Filter { return kvqueue.Filter{Why: "paper", Most: 2} }, []string{"0", "2"}},
		"behind":  {func(_ time.Time, keys []kvqueue.Key) kvqueue.Filter { return kvqueue.Filter{Behind: keys[2], Most: 2} }, []string{"3", "4"}},
		"no matter": {func(now time.Time, _ []kvqueue.Key) kvqueue.Filter {
			return kvqueue.Filter{Before: now.Add(-time.Hour)}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, keys := buried(t, newStore(t), 6)
				f := c.filter(time.Now(), keys)
				assert.Equal(t, c.want, foundDead(t, q, f))
				n, err := q.RequeueAll(t.Context(), f)
				require.NoError(t, err)
				assert.Equal(t, len(c.want), n)
				assert.Equal(t, c.want, all(t, q))
				assert.Equal(t, kvqueue.Length{Ready: n, Dead: 6 - n}, lengthOf(t, q))
			})
			synctest.Test(t, func(t *testing.T) {
				q, keys := buried(t, newStore(t), 6)
				f := c.filter(time.Now(), keys)
				n, err := q.DiscardAll(t.Context(), f)
				require.NoError(t, err)
				assert.Equal(t, len(c.want), n)
				assert.Equal(t, kvqueue.Length{Dead: 6 - n}, lengthOf(t, q))
				for _, value := range foundDead(t, q, kvqueue.Filter{}) {
					assert.NotContains(t, c.want, value)
				}
			})
		})
	}
}

func TestDiscardDeletesDeadLettersByTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, keys := buried(t, newStore(t), 4)
		ready, err := q.Enqueue(t.Context(), []byte("ready"))
		require.NoError(t, err)
		n, err := q.Discard(t.Context(), keys[0], ready.First, keys[2], keys[0], kvqueue.Key{})
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.Equal(t, []string{"1", "3"}, foundDead(t, q, kvqueue.Filter{}))
		assert.Equal(t, kvqueue.Length{Ready: 1, Dead: 2}, lengthOf(t, q))
		n, err = q.Discard(t.Context())
		require.NoError(t, err)
		assert.Zero(t, n, "no keys are not all")
	})
}

// A letter that is requeued while it is to be discarded stays, and is not counted.
func TestALetterThatIsRequeuedMeanwhileIsNotDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		_, keys := buried(t, kv, 3)
		net := newCut(kv)
		q, other := open(t, net, "q"), open(t, kv, "q")
		net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
			net.intercept(nil)
			n, err := other.Requeue(t.Context(), keys[1])
			assert.NoError(t, err)
			assert.Equal(t, 1, n)
			return nil
		})
		n, err := q.DiscardAll(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.Equal(t, kvqueue.Length{Ready: 1}, lengthOf(t, q))
	})
}

// The counts are true whatever becomes of one of the transactions, and the store that fails in the middle is said.
func TestTheCountsOfDeadLettersAreTrue(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late} {
		synctest.Test(t, func(t *testing.T) {
			armed := memkv.None
			q, _ := buried(t, newStore(t, faults(func([]kvqueue.Guard, []kvqueue.Write) (f memkv.Fault) {
				f, armed = armed, memkv.None
				return f
			})), 4)
			armed = fault
			n, err := q.RequeueAll(t.Context(), kvqueue.Filter{Most: 2})
			require.NoError(t, err)
			assert.Equal(t, 2, n)
			time.Sleep(time.Second)
			assert.Equal(t, kvqueue.Length{Ready: 2, Dead: 2}, lengthOf(t, q))
			armed = fault
			n, err = q.DiscardAll(t.Context(), kvqueue.Filter{})
			if fault == memkv.Unanswered {
				assert.Zero(t, n)
				assert.ErrorIs(t, err, kvqueue.ErrUnknown)
				assert.ErrorContains(t, err, "not known whether 2 more were")
			} else {
				require.NoError(t, err)
				assert.Equal(t, 2, n)
			}
			time.Sleep(time.Second)
			assert.Equal(t, kvqueue.Length{Ready: 2}, lengthOf(t, q))
		})
	}
}

func TestARequeueOfAStoreThatFailsSaysWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &denied{KV: newStore(t)}
		net := newCut(kv)
		_, _ = buried(t, kv, 5)
		q := open(t, net, "q")
		seen := 0
		net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
			if seen++; seen == 3 {
				kv.is.Store(true)
			}
			return nil
		})
		n, err := q.RequeueAll(t.Context(), kvqueue.Filter{})
		assert.ErrorIs(t, err, errDenied)
		assert.ErrorContains(t, err, "2 items are ready again: permission denied")
		assert.Equal(t, 2, n)
		for _, err := range q.FindDead(t.Context(), kvqueue.Filter{}) {
			assert.ErrorIs(t, err, errDenied)
		}
		kv.is.Store(false)
		net.intercept(nil)
		n, err = q.RequeueAll(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 3, n)
	})
}

// A letter that was put back by another, and has died again, is not the one that the filter has meant.
func TestALetterThatHasDiedAgainMeanwhileStaysDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q, other := open(t, net, "q", kvqueue.MaxAttempts(1)), open(t, kv, "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		failOnce(t, other)
		failOnce(t, other)
		again := errors.New("died again")
		net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
			net.intercept(nil)
			n, err := other.Requeue(t.Context(), pos.Last)
			assert.NoError(t, err)
			assert.Equal(t, 1, n)
			assert.ErrorIs(t, other.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return again }), again)
			return nil
		})
		n, err := q.RequeueAll(t.Context(), kvqueue.Filter{Why: errFails.Error()})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		letters, err := q.Dead(t.Context(), kvqueue.Key{}, 2)
		require.NoError(t, err)
		require.Len(t, letters, 1)
		assert.Equal(t, again.Error(), letters[0].Why)
	})
}
