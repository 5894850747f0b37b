package kvqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// within calls f with a ctx that ends after a second.
func within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	return f(ctx)
}

// A Commit was done and its answer lost. One that follows, of that item and of another, is refused, and the other item
// stays claimed.
func TestACommitOfAnItemThatIsGoneLeavesTheOthersClaimed(t *testing.T) {
	for name, order := range map[string][]int{"it is the first": {1, 0}, "it is the last": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newCut(newStore(t))
				q := open(t, net, "q", kvqueue.TTL(time.Hour))
				_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
					net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error { net.off(); return nil })
					err := within(ctx, func(ctx context.Context) error { return q.Commit(ctx, items[1:], nil) })
					assert.ErrorIs(t, err, kvqueue.ErrUnknown)
					net.intercept(nil)
					net.on()
					both := []kvqueue.Item{items[order[0]], items[order[1]]}
					err = within(ctx, func(ctx context.Context) error { return q.Commit(ctx, both, nil) })
					assert.ErrorIs(t, err, kvqueue.ErrSettled)
					assert.NotErrorIs(t, err, kvqueue.ErrUnknown)
					assert.ErrorIs(t, items[1].Err(), kvqueue.ErrSettled)
					assert.NoError(t, items[0].Err())
					assert.NoError(t, q.Commit(ctx, items[:1], nil))
					return nil
				}))
				n, err := q.Len(t.Context())
				require.NoError(t, err)
				assert.Zero(t, n)
			})
		})
	}
}

// The handler has returned while its Ack is on its way. Do waits for what comes of that.
func TestDoWaitsForAnAckThatIsOnItsWay(t *testing.T) {
	for name, c := range map[string]struct {
		after func(net *cut)
		want  error
	}{
		"it is done":   {func(net *cut) { net.intercept(nil) }, nil},
		"it is denied": {func(net *cut) { refuseOnce(net) }, nil},
		"it is lost":   {func(net *cut) { net.endSession() }, kvqueue.ErrLost},
	} {
		for _, take := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newCut(newStore(t))
					q := open(t, net, "q", kvqueue.TTL(time.Minute))
					_, err := q.Enqueue(t.Context(), []byte("a"))
					require.NoError(t, err)
					ack := func(ctx context.Context, items []kvqueue.Item) error {
						net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error { return kvqueue.ErrUnknown })
						err := within(ctx, func(ctx context.Context) error { return q.Ack(ctx, items...) })
						assert.ErrorIs(t, err, kvqueue.ErrUnknown)
						time.AfterFunc(time.Second, func() { c.after(net) })
						return nil
					}
					begin := time.Now()
					if take {
						err = async.Scope(t.Context(), func(ctx context.Context) error {
							items, err := q.Take(ctx, 1)
							require.NoError(t, err)
							return ack(ctx, items)
						})
					} else {
						err = q.Do(t.Context(), 1, ack)
					}
					if assert.ErrorIs(t, err, c.want); c.want == nil {
						n, err := q.Len(t.Context())
						require.NoError(t, err)
						assert.Zero(t, n)
					}
					assert.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
					net.intercept(nil)
				})
			})
		}
	}
}

// refuseOnce has the next transaction refused, for a reason that is no conflict.
func refuseOnce(net *cut) {
	net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
		net.intercept(nil)
		return errors.New("not now")
	})
}

// An Ack of more items than a transaction holds was done in part, and of the rest it is not known. It is called again
// until it is done.
func TestAnAckOfManyIsRepeated(t *testing.T) {
	for _, tries := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			net := newCut(newStore(t))
			q := open(t, net, "q", kvqueue.TTL(time.Hour))
			_, err := q.Enqueue(t.Context(), numbered(100)...)
			require.NoError(t, err)
			assert.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				var items []kvqueue.Item
				for len(items) < 100 {
					more, err := q.Take(ctx, 100)
					require.NoError(t, err)
					items = append(items, more...)
				}
				acks := 0
				net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
					if acksOf(w) > 0 {
						if acks++; acks > 1 {
							return kvqueue.ErrUnknown
						}
					}
					return nil
				})
				ack := func(ctx context.Context) error { return q.Ack(ctx, append(items, items[0], items[99])...) }
				for range tries + 1 {
					assert.ErrorIs(t, within(ctx, ack), kvqueue.ErrUnknown)
				}
				net.intercept(nil)
				assert.NoError(t, q.Ack(ctx, append(items, items[0], items[99])...))
				assert.ErrorIs(t, within(ctx, ack), kvqueue.ErrSettled)
				return nil
			}))
			assert.EqualValues(t, 100, q.Stats().Acked)
		})
	}
}

// The second of three Acks has found out what came of the first, and has come to nothing itself.
func TestAnAckKnowsWhatTheFirstHasDoneThoughTheSecondCameToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		q := open(t, net, "q", kvqueue.TTL(time.Minute))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
			never := func([]kvqueue.Guard, []kvqueue.Write) error { return kvqueue.ErrUnknown }
			net.intercept(never)
			assert.ErrorIs(t, within(ctx, func(ctx context.Context) error { return q.Ack(ctx, items[0]) }), kvqueue.ErrUnknown)
			net.intercept(nil)
			time.Sleep(10 * time.Second)
			net.intercept(never)
			assert.ErrorIs(t, within(ctx, func(ctx context.Context) error { return q.Ack(ctx, items...) }), kvqueue.ErrUnknown)
			net.intercept(nil)
			assert.NoError(t, q.Ack(ctx, items...))
			return nil
		}))
	})
}

// An Ack has come to nothing, as an item of it was settled before. It had found out what came of an earlier one, which is
// told to the next.
func TestAnAckKnowsWhatTheFirstHasDoneThoughTheSecondWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q := open(t, net, "q", kvqueue.TTL(time.Minute))
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
			require.NoError(t, q.Ack(ctx, items[1]))
			net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
				net.intercept(nil)
				_, err := kv.Commit(ctx, g, withInner(w))
				assert.NoError(t, err)
				net.off()
				return kvqueue.ErrUnknown
			})
			assert.ErrorIs(t, within(ctx, func(ctx context.Context) error { return q.Ack(ctx, items[0]) }), kvqueue.ErrUnknown)
			net.on()
			assert.ErrorIs(t, q.Ack(ctx, items...), kvqueue.ErrSettled)
			assert.NoError(t, q.Ack(ctx, items[0]))
			return nil
		}))
	})
}

// Somebody has deleted the key of a claim. A Commit of it and of another is told so, and the other stays claimed.
func TestACommitIsToldThatAClaimWasTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		require.ErrorIs(t, q.Do(t.Context(), 2, func(ctx context.Context, items []kvqueue.Item) error {
			results, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("kvq/q/w/"), End: []byte("kvq/q/w0")})
			require.NoError(t, err)
			require.Len(t, results[0].Pairs, 2)
			_, err = kv.Commit(ctx, nil, []kvqueue.Write{{Key: results[0].Pairs[0].Key, Delete: true}})
			require.NoError(t, err)
			err = q.Commit(ctx, items, nil)
			assert.ErrorIs(t, err, kvqueue.ErrLost)
			assert.NotErrorIs(t, err, kvqueue.ErrSettled)
			assert.ErrorContains(t, err, "somebody has taken the claim away")
			assert.ErrorIs(t, q.Ack(ctx, items[0]), kvqueue.ErrLost)
			return q.Commit(ctx, items[1:], nil)
		}), kvqueue.ErrLost)
		synctest.Wait() // the observer is told behind the calls
		s := q.Stats()
		assert.EqualValues(t, 1, s.Lost)
		assert.EqualValues(t, 1, s.Acked)
	})
}
