package kvqueue_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// erases says whether a transaction deletes ready items or dead letters, and claims none.
func erases(writes []kvqueue.Write) bool {
	first := writes[0].Key
	return writes[0].Delete && (bytes.HasPrefix(first, []byte("kvq/q/q/")) || bytes.HasPrefix(first, []byte("kvq/q/x/"))) &&
		!slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete })
}

// added adds so many items, some in each minute of an hour.
func added(t *testing.T, q *kvqueue.Queue, each int) {
	t.Helper()
	for range 60 {
		_, err := q.Enqueue(t.Context(), numbered(each)...)
		require.NoError(t, err)
		time.Sleep(time.Minute)
	}
}

// lengthOf counts a queue in which nothing may be wrong.
func lengthOf(t *testing.T, q *kvqueue.Queue) kvqueue.Length {
	t.Helper()
	a, err := q.Audit(t.Context())
	require.NoError(t, err)
	require.Empty(t, a.Faults)
	return a.Length
}

func TestPurgeDeletesWhatTheFilterMeans(t *testing.T) {
	for name, c := range map[string]struct {
		filter func(now time.Time) kvqueue.Filter
		want   int
	}{
		"all":          {func(time.Time) kvqueue.Filter { return kvqueue.Filter{} }, 300},
		"older":        {func(now time.Time) kvqueue.Filter { return kvqueue.Filter{Before: now.Add(-40 * time.Minute)} }, 100},
		"younger":      {func(now time.Time) kvqueue.Filter { return kvqueue.Filter{After: now.Add(-10*time.Minute - 1)} }, 50},
		"at most":      {func(time.Time) kvqueue.Filter { return kvqueue.Filter{Most: 70} }, 70},
		"nothing":      {func(now time.Time) kvqueue.Filter { return kvqueue.Filter{Before: now.Add(-2 * time.Hour)} }, 0},
		"at most many": {func(time.Time) kvqueue.Filter { return kvqueue.Filter{Most: 1000} }, 300},
		"older, at most": {func(now time.Time) kvqueue.Filter {
			return kvqueue.Filter{Before: now.Add(-40 * time.Minute), Most: 2}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t), "q")
				added(t, q, 5)
				n, err := q.Purge(t.Context(), c.filter(time.Now()))
				require.NoError(t, err)
				assert.Equal(t, c.want, n)
				assert.Equal(t, kvqueue.Length{Ready: 300 - c.want}, lengthOf(t, q))
			})
		})
	}
}

func TestPurgeBeginsBehindAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		_, err = q.Enqueue(t.Context(), []byte("b"), []byte("c"))
		require.NoError(t, err)
		n, err := q.Purge(t.Context(), kvqueue.Filter{Behind: pos.First})
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.Equal(t, []string{"a"}, all(t, q))
	})
}

func TestAFilterThatMakesNoSenseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		now := time.Now()
		var wrong *kvqueue.InvalidError
		for _, f := range []kvqueue.Filter{{Why: "x"}, {Most: -1}, {Before: now, After: now}} {
			_, err := q.Purge(t.Context(), f)
			assert.ErrorAs(t, err, &wrong)
		}
		for _, f := range []kvqueue.Filter{{Most: -1}, {Before: now, After: now}} {
			_, err = q.DiscardAll(t.Context(), f)
			assert.ErrorAs(t, err, &wrong)
			_, err = q.RequeueAll(t.Context(), f)
			assert.ErrorAs(t, err, &wrong)
		}
		assert.Equal(t, kvqueue.Length{Ready: 1}, lengthOf(t, q))
	})
}

// An item that is claimed while Purge is at it stays, whatever becomes of the others of its transaction.
func TestWhatIsClaimedMeanwhileIsNotPurged(t *testing.T) {
	for name, fault := range map[string]memkv.Fault{"it is told so": memkv.None, "the answer is lost": memkv.Unanswered} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, armed := newStore(t), fault
				net := newCut(memkv.NewFaulty(store, func(_ []kvqueue.Guard, w []kvqueue.Write) (f memkv.Fault) {
					if erases(w) {
						f, armed = armed, memkv.None
					}
					return f
				}))
				consumer, q := open(t, store, "q"), open(t, net, "q")
				_, err := q.Enqueue(t.Context(), numbered(100)...)
				require.NoError(t, err)
				var got []string
				release := make(chan struct{})
				ended := make(chan error, 1)
				net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
					net.intercept(nil)
					claimed := make(chan struct{})
					go func() {
						ended <- consumer.Do(t.Context(), 2, func(_ context.Context, items []kvqueue.Item) error {
							for _, i := range items {
								got = append(got, string(i.Value))
							}
							close(claimed)
							<-release
							return nil
						})
					}()
					<-claimed
					return nil
				})
				n, err := q.Purge(t.Context(), kvqueue.Filter{})
				require.NoError(t, err)
				assert.Equal(t, 98, n)
				assert.Equal(t, kvqueue.Length{Claimed: 2}, lengthOf(t, q))
				close(release)
				require.NoError(t, <-ended)
				assert.Equal(t, []string{"0", "1"}, got)
				assert.Equal(t, kvqueue.Length{}, lengthOf(t, q))
			})
		})
	}
}

// The count is true whatever becomes of one of the transactions: items are counted if it is known that they were deleted
// by the call.
func TestTheCountOfAPurgeIsTrue(t *testing.T) {
	for name, c := range map[string]struct {
		fault memkv.Fault
		n     int
		says  string
	}{
		"refused":                        {memkv.Conflict, 200, ""},
		"not done, and the answer lost":  {memkv.Dropped, 200, ""},
		"done, and the answer lost":      {memkv.Unanswered, 137, "137 items were deleted, and it is not known whether 63 more were"},
		"done late, and the answer lost": {memkv.Late, 200, ""},
		"none of these":                  {memkv.None, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := 0
				q := open(t, newStore(t, faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
					if erases(w) {
						if seen++; seen == 2 {
							return c.fault
						}
					}
					return memkv.None
				})), "q")
				_, err := q.Enqueue(t.Context(), numbered(200)...)
				require.NoError(t, err)
				n, err := q.Purge(t.Context(), kvqueue.Filter{})
				assert.Equal(t, c.n, n)
				if c.says == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, kvqueue.ErrUnknown)
					assert.ErrorContains(t, err, c.says)
				}
				time.Sleep(time.Second)
				assert.Equal(t, kvqueue.Length{}, lengthOf(t, q), "all is done all the same")
			})
		})
	}
}

// An answer is lost, and nothing was done. Consumers take all items of the transaction meanwhile: those were not purged.
func TestWhatConsumersHaveTakenIsNotCountedAsPurged(t *testing.T) {
	for _, acknowledged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kv := newStore(t)
			net := newCut(kv)
			consumer, q := open(t, kv, "q"), open(t, net, "q")
			_, err := q.Enqueue(t.Context(), numbered(3)...)
			require.NoError(t, err)
			release, ended := make(chan struct{}), make(chan error, 1)
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
				net.intercept(nil)
				claimed := make(chan struct{})
				go func() {
					ended <- consumer.Do(t.Context(), 3, func(ctx context.Context, items []kvqueue.Item) error {
						if acknowledged {
							assert.NoError(t, consumer.Ack(ctx, items...))
						}
						close(claimed)
						<-release
						return nil
					})
				}()
				<-claimed
				return kvqueue.ErrUnknown
			})
			n, err := q.Purge(t.Context(), kvqueue.Filter{})
			assert.Zero(t, n)
			if acknowledged { // nothing is left that could tell
				assert.ErrorIs(t, err, kvqueue.ErrUnknown)
				assert.ErrorContains(t, err, "0 items were deleted, and it is not known whether 3 more were")
			} else {
				assert.NoError(t, err)
			}
			close(release)
			require.NoError(t, <-ended)
		})
	}
}

// A store that refuses everything in the middle: the count and the error say what was done, and another call does the rest.
func TestAPurgeOfAStoreThatFailsSaysWhatWasDone(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		says   string
	}{
		"denied":                               {errDenied, "63 items were deleted: permission denied"},
		"denied after an answer that was lost": {kvqueue.ErrUnknown, "63 items were deleted, and it is not known whether 63 more were"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := &denied{KV: newStore(t)}
				net := newCut(kv)
				q := open(t, net, "q")
				_, err := q.Enqueue(t.Context(), numbered(200)...)
				require.NoError(t, err)
				seen := 0
				net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
					if seen++; seen < 2 {
						return nil
					}
					kv.is.Store(true)
					return c.answer
				})
				n, err := q.Purge(t.Context(), kvqueue.Filter{})
				assert.ErrorIs(t, err, errDenied)
				assert.Equal(t, c.answer == kvqueue.ErrUnknown, isUnknown(err))
				assert.ErrorContains(t, err, c.says)
				assert.Equal(t, 63, n)
				kv.is.Store(false)
				net.intercept(nil)
				n, err = q.Purge(t.Context(), kvqueue.Filter{})
				require.NoError(t, err)
				assert.Equal(t, 137, n)
			})
		})
	}
}

// A Purge ends with its ctx, also while every transaction is refused.
func TestAPurgeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t, faults(func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
			if erases(w) {
				return memkv.Conflict
			}
			return memkv.None
		})), "q")
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n, err := q.Purge(ctx, kvqueue.Filter{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, kvqueue.ErrUnknown)
		assert.Zero(t, n)
	})
}

// A full store takes no put. Purge and Discard make room.
func TestAFullStoreCanBePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q", kvqueue.MaxAttempts(1))
		_, err := q.Enqueue(t.Context(), numbered(100)...)
		require.NoError(t, err)
		failOnce(t, q)
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if slices.ContainsFunc(w, func(w kvqueue.Write) bool { return !w.Delete }) {
				return kvqueue.ErrNoSpace
			}
			return nil
		})
		n, err := q.Purge(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 99, n)
		n, err = q.DiscardAll(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		net.intercept(nil)
		assert.Equal(t, kvqueue.Length{}, lengthOf(t, q))
	})
}

// Keys that nobody understands stay, stop nothing, and are named by Audit.
func TestAPurgeLeavesWhatItDoesNotUnderstand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "a/b \xff")
		_, err := q.Enqueue(t.Context(), numbered(100)...)
		require.NoError(t, err)
		root := "kvq/a%2Fb%20%FF/"
		var k kvqueue.Key
		k[7] = 1
		_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{
			{Key: []byte(root + "q/garbage")}, {Key: []byte(root + "x/garbage")},
			{Key: append([]byte(root+"x/"), k[:]...), Value: []byte{0x80}}, {Key: append([]byte(root+"d/"), k[:]...)},
		})
		require.NoError(t, err)
		n, err := q.Purge(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 100, n)
		n, err = q.DiscardAll(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Zero(t, n)
		n, err = q.RequeueAll(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Zero(t, n)
		a, err := q.Audit(t.Context())
		require.NoError(t, err)
		assert.Len(t, a.Faults, 3)
		n, err = q.Discard(t.Context(), k) // by its key
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		a, err = q.Audit(t.Context())
		require.NoError(t, err)
		assert.Len(t, a.Faults, 2)
	})
}

func isUnknown(err error) bool { return errors.Is(err, kvqueue.ErrUnknown) }

// An answer is lost, and nothing was done; others take one item, which keeps that transaction from ever being done. What
// becomes of the others later is known.
func TestATransactionThatOthersHaveSpoiltLeavesNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		consumer, q := open(t, kv, "q"), open(t, net, "q")
		_, err := q.Enqueue(t.Context(), numbered(3)...)
		require.NoError(t, err)
		take := func(items int) {
			for range items {
				assert.NoError(t, consumer.Do(t.Context(), 1, each(func(kvqueue.Item) {})))
			}
		}
		net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
				net.intercept(nil)
				take(2)
				return nil
			})
			take(1)
			return kvqueue.ErrUnknown
		})
		n, err := q.Purge(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

// An item of which it is not known when it was added is neither older nor younger than anything.
func TestAnItemWithoutATimeIsNeitherOldNorYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		pos, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: append([]byte("kvq/q/q/"), pos.First[:]...), Value: []byte{0, 0, 1}}})
		require.NoError(t, err)
		for _, f := range []kvqueue.Filter{{Before: time.Now().Add(time.Hour)}, {After: time.Now().Add(-time.Hour)}} {
			n, err := q.Purge(t.Context(), f)
			require.NoError(t, err)
			assert.Zero(t, n)
		}
		n, err := q.Purge(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}
