package kvqueue_test

import (
	"context"
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

// An item that is claimed while nobody waits for it goes back, and later items have passed it meanwhile.

// stays has a handle take items, which a handler keeps for a minute, and returns their values.
func stays(t *testing.T, q *kvqueue.Queue, most int) (got <-chan []string) {
	values := make(chan []string, 1)
	go func() {
		_ = q.Do(t.Context(), most, func(ctx context.Context, items []kvqueue.Item) error {
			var of []string
			for _, i := range items {
				of = append(of, string(i.Value))
			}
			values <- of
			return async.Sleep(ctx, time.Minute)
		})
	}()
	return values
}

// The watch has shown the first claim of a transaction when its answer comes, and shows the others later.
func TestATransactionThatIsHalfShownIsCountedAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, &tardy{cut: newCut(slowWatch{kv, false}), then: func() { time.Sleep(1500 * time.Microsecond) }}, "q")
		waits(t, q)()
		_, err := q.Enqueue(t.Context(), numbered(10)...)
		require.NoError(t, err)
		time.Sleep(time.Second)
		assert.Equal(t, []string{"0", "1", "2"}, <-stays(t, q, 3))
		time.Sleep(time.Second)
		assert.EqualValues(t, 3, q.Stats().Claimed)
	})
}

// The answer to a claim was lost, and the watch is late: what the claim has brought is looked for before
// anything else is claimed.
func TestAClaimWhoseAnswerWasLostIsReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &mute{KV: newStore(t, once("/w/", memkv.Unanswered, memkv.Unanswered))}
		q := open(t, kv, "q")
		waits(t, q)()
		kv.is.Store(true)
		_, err := q.Enqueue(t.Context(), numbered(10)...)
		require.NoError(t, err)
		assert.Equal(t, []string{"0", "1", "2"}, <-stays(t, q, 3))
		time.Sleep(time.Second)
		assert.EqualValues(t, 3, q.Stats().Claimed)
		assert.Equal(t, 3, keys(t, kv, "w"))
	})
}

// Another has assigned an item to a handle whose watch is late. When its patience is over it finds that item,
// and claims no other.
func TestAHandleThatClaimsForItselfFindsWhatItWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		late := &mute{KV: kv}
		first, second := open(t, kv, "q"), open(t, late, "q")
		waits(t, first)()
		waits(t, second)()
		late.is.Store(true)
		_, err := first.Enqueue(t.Context(), numbered(2)...)
		require.NoError(t, err)
		assert.Equal(t, []string{"0"}, <-stays(t, second, 1))
		time.Sleep(time.Second)
		assert.EqualValues(t, 1, second.Stats().Claimed)
	})
}

// A handle has claimed for itself, as the one that assigns was slow: it has not seen that, and finds
// that the handle wants nothing any more.
func TestWhoHasClaimedForItselfIsGivenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		late := &mute{KV: kv}
		first, second, in := open(t, late, "q"), open(t, kv, "q"), open(t, kv, "q")
		waits(t, first)()
		got := stays(t, second, 1)
		time.Sleep(time.Second)
		late.is.Store(true)
		_, err := in.Enqueue(t.Context(), numbered(2)...)
		require.NoError(t, err)
		assert.Equal(t, []string{"0"}, <-got)
		time.Sleep(30 * time.Second) // the first looks without having been told
		assert.EqualValues(t, 1, second.Stats().Claimed)
		assert.Equal(t, 1, keys(t, kv, "w"))
	})
}

// A handle whose caller has got fewer items than it would take has not said yet that it wants no more: the one that
// assigns knows.
func TestACallerThatGotFewerThanItWouldTakeIsGivenNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		var slow atomic.Int64
		net.delay = func() time.Duration { return time.Duration(slow.Load()) }
		first, second, in := open(t, kv, "q"), open(t, net, "q"), open(t, kv, "q")
		waits(t, first)()
		one, two := stays(t, second, 10), stays(t, second, 10)
		time.Sleep(time.Second)
		slow.Store(int64(20 * time.Millisecond))
		_, err := in.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond)
		_, err = in.Enqueue(t.Context(), numbered(15)...)
		require.NoError(t, err)
		got := [][]string{<-one, <-two}
		assert.Equal(t, 11, len(got[0])+len(got[1]))
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 11, second.Stats().Claimed)
		assert.Equal(t, 11, keys(t, kv, "w"))
		n := stays(t, second, 10)
		assert.Len(t, <-n, 5)
		assert.Zero(t, second.Stats().Conflicts+first.Stats().Conflicts)
	})
}

// An updater reads and writes in one transaction, for one handle at a time. after is called when a transaction was done, and
// its error is the answer.
type updater struct {
	kvqueue.KV
	after func() error
}

func (u *updater) Limits() kvqueue.Limits {
	l := u.KV.Limits()
	l.Updates = true
	return l
}

func (u *updater) Glance(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	return u.Read(ctx, ranges...)
}

func (u *updater) Update(
	ctx context.Context, ranges []kvqueue.Range, decide func([]kvqueue.Result, kvqueue.Rev) ([]kvqueue.Guard, []kvqueue.Write, error),
) (kvqueue.Rev, error) {
	results, rev, err := u.Read(ctx, ranges...)
	if err != nil {
		return 0, err
	}
	guards, writes, err := decide(results, rev)
	if err != nil {
		return 0, err
	}
	if rev, err = u.Commit(ctx, guards, writes); err == nil {
		err = u.after()
	}
	return rev, err
}

// On a store that reads and writes in one transaction the answer to a claim of five was lost, ten were wanted, and there is
// more by now: it claims five more.
func TestAClaimAfterALostAnswerIsOfWhatIsWantedStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &mute{KV: newStore(t)}
		kv := &updater{late, func() error { return nil }}
		q, in := open(t, kv, "q"), open(t, late.KV, "q")
		waits(t, q)()
		one, two := stays(t, q, 5), stays(t, q, 5)
		time.Sleep(time.Second)
		kv.after = func() error {
			kv.after = func() error { return nil }
			late.is.Store(true)
			_, err := in.Enqueue(t.Context(), numbered(20)...)
			assert.NoError(t, err)
			return kvqueue.ErrUnknown
		}
		_, err := in.Enqueue(t.Context(), numbered(5)...)
		require.NoError(t, err)
		assert.Len(t, <-one, 5)
		assert.Len(t, <-two, 5)
		time.Sleep(time.Second)
		assert.EqualValues(t, 10, q.Stats().Claimed)
		assert.Equal(t, 10, keys(t, kv, "w"))
	})
}

// A claim whose answer was lost is done late, and spoils the next. The items that it has brought are looked for once more.
func TestAClaimThatIsDoneLateIsReadBackAfterTheConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		late := &mute{KV: net}
		q := open(t, late, "q")
		waits(t, q)()
		_, err := q.Enqueue(t.Context(), numbered(10)...)
		require.NoError(t, err)
		late.is.Store(true)
		net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
				net.intercept(nil)
				_, err := kv.Commit(t.Context(), g, withInner(w))
				assert.NoError(t, err)
				return nil
			})
			return kvqueue.ErrUnknown
		})
		assert.Equal(t, []string{"0", "1", "2"}, <-stays(t, q, 3))
		time.Sleep(time.Second)
		assert.EqualValues(t, 3, q.Stats().Claimed)
		assert.Equal(t, 3, keys(t, kv, "w"))
	})
}
