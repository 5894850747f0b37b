package kvqueue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// add adds values, of which each is of the group before its dot; of none if there is no dot.
func add(t *testing.T, q *kvqueue.Queue, values ...string) {
	t.Helper()
	for _, v := range values {
		var options []kvqueue.AddOption
		if group, _, is := strings.Cut(v, "."); is {
			options = append(options, kvqueue.Group(group))
		}
		_, err := q.Add(t.Context(), []byte(v), options...)
		require.NoError(t, err)
	}
}

// try takes what can be claimed within some seconds of a bubble's time, and gives it back or acknowledges it.
func try(t *testing.T, q *kvqueue.Queue, most int, acks bool) (values []string) {
	t.Helper()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		some, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		items, err := q.Take(some, most)
		for _, i := range items {
			values = append(values, string(i.Value))
		}
		switch {
		case some.Err() != nil:
			return nil
		case err != nil || acks:
			return err
		}
		return q.Nack(ctx, nil, items...)
	}))
	return values
}

// soundGroups demands that the store holds nothing that should not be.
func soundGroups(t *testing.T, kv kvqueue.KV, q *kvqueue.Queue) kvqueue.Audit {
	t.Helper()
	proof.Audit(t, kv, "q")
	a, err := q.Audit(t.Context())
	require.NoError(t, err)
	assert.Empty(t, a.Faults)
	return a
}

// An enqueue puts the marker of its group without having looked at anything: a group that is held stays that.
func TestAnEnqueueDoesNotFreeAGroupThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, other := open(t, kv, "q"), open(t, kv, "q")
		add(t, q, "a.1")
		require.NoError(t, q.Do(t.Context(), 5, func(_ context.Context, items []kvqueue.Item) error {
			assert.Equal(t, "a", items[0].Group)
			add(t, other, "a.2", "b.1", "a.3")
			time.Sleep(time.Second)
			assert.Equal(t, []string{"b.1"}, try(t, other, 5, true))
			assert.Empty(t, try(t, q, 5, true))
			a := soundGroups(t, kv, q)
			assert.Equal(t, kvqueue.Length{Ready: 2, Grouped: 2, Claimed: 1}, a.Length)
			return nil
		}))
		assert.Equal(t, []string{"a.2"}, try(t, other, 5, true))
		assert.Equal(t, []string{"a.3"}, try(t, q, 5, true))
		assert.Empty(t, try(t, q, 5, true))
		soundGroups(t, kv, q)
	})
}

// An item with a smaller key comes between the look at its group and the claim of the one behind it, and perhaps another claims
// it at once.
func TestAnItemThatComesBeforeTheFirstOfItsGroupIsNotPassed(t *testing.T) {
	for _, claimed := range []bool{false, true} {
		t.Run(fmt.Sprint(claimed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				slow := &late{KV: kv, hold: make(chan struct{}), held: make(chan struct{})}
				producer, net := open(t, slow, "q"), newCut(kv)
				q, other := open(t, net, "q"), open(t, kv, "q")
				add(t, q, "a.1") // the layout has groups from now on
				assert.Equal(t, []string{"a.1"}, try(t, q, 1, true))
				added := make(chan error)
				go func() {
					_, err := producer.Add(t.Context(), []byte("first"), kvqueue.Group("a"))
					added <- err
				}()
				<-slow.held
				for range 3 {
					_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("other")}})
					require.NoError(t, err)
				}
				add(t, q, "a.2")
				done := make(chan struct{})
				before(net, "/w/", func() {
					close(slow.hold)
					assert.NoError(t, <-added)
					if !claimed {
						return
					}
					go func() {
						_ = other.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
							assert.Equal(t, "first", string(items[0].Value))
							<-done
							return nil
						})
					}()
					time.Sleep(time.Second)
				})
				if claimed {
					assert.Empty(t, try(t, q, 1, true))
					close(done)
					time.Sleep(time.Second)
				} else {
					assert.Equal(t, []string{"first"}, try(t, q, 1, true))
				}
				assert.Equal(t, []string{"a.2"}, try(t, q, 1, true))
			})
		})
	}
}

// Another claims the first item between the look and the claim, and keeps it, or settles it.
func TestOfTwoThatClaimFromAGroupOneIsRefused(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprint(keeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				net := newCut(kv)
				q, other := open(t, net, "q"), open(t, kv, "q")
				add(t, other, "a.1", "a.2")
				done, claimed := make(chan struct{}), make(chan struct{})
				var all sync.WaitGroup
				defer all.Wait()
				before(net, "/w/", func() {
					all.Go(func() {
						assert.NoError(t, other.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
							close(claimed)
							if keeps {
								<-done
							}
							return nil
						}))
					})
					<-claimed
					time.Sleep(time.Second)
				})
				if keeps {
					assert.Empty(t, try(t, q, 1, true))
				} else {
					assert.Equal(t, []string{"a.2"}, try(t, q, 1, true))
				}
				close(done)
				all.Wait()
				soundGroups(t, kv, q)
			})
		})
	}
}

// The answers to transactions of groups are lost, of all kinds and in all ways.
func TestAGroupGoesOnWhateverAnswersAreLost(t *testing.T) {
	for _, kind := range []string{"/g/", "/m/", "/w/", "/x/"} {
		for _, fault := range []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late} {
			t.Run(fmt.Sprint(kind, fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := newStore(t, once(kind, fault, memkv.None, fault, memkv.None, memkv.None, fault, fault, fault))
					q := open(t, kv, "q", kvqueue.MaxAttempts(2))
					add(t, q, "a.1", "a.2", "a.3")
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					var got []string
					for len(got) < 4 {
						_ = q.Do(ctx, 3, func(_ context.Context, items []kvqueue.Item) error {
							assert.Len(t, items, 1)
							got = append(got, fmt.Sprint(string(items[0].Value), items[0].Attempt))
							if string(items[0].Value) == "a.1" {
								return errFails
							}
							return nil
						})
					}
					time.Sleep(time.Second)
					assert.Equal(t, []string{"a.11", "a.12", "a.21", "a.31"}, got)
					assert.Equal(t, kvqueue.Length{Dead: 1}, soundGroups(t, kv, q).Length)
					letters, err := q.Dead(t.Context(), kvqueue.Key{}, 1)
					require.NoError(t, err)
					assert.Equal(t, "a", letters[0].Group)
					assert.Equal(t, errFails.Error(), letters[0].Why)
				})
			})
		}
	}
}

// An item of a group that has failed keeps its group waiting for as long as it waits itself, and no other group.
func TestARetryDelayHoldsItsGroupBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.RetryDelay(time.Minute, time.Minute))
		add(t, q, "a.1", "a.2", "b.1")
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
		assert.Equal(t, []string{"b.1"}, try(t, q, 5, true))
		time.Sleep(10 * time.Second)
		assert.Empty(t, try(t, q, 5, true))
		soundGroups(t, kv, q)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"a.1"}, try(t, q, 5, true))
		assert.Equal(t, []string{"a.2"}, try(t, q, 5, true))
	})
}

// A session ends: what it had of groups comes back, before what is behind it.
func TestAGroupOfASessionThatHasEndedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q, other := open(t, net, "q"), open(t, kv, "q")
		var values []string
		for i := range 50 { // more than one transaction gives back
			values = append(values, fmt.Sprintf("%02d.1", i), fmt.Sprintf("%02d.2", i))
		}
		add(t, other, values...)
		_ = q.Do(t.Context(), 63, func(ctx context.Context, items []kvqueue.Item) error {
			assert.Len(t, items, 31, "that is what a transaction holds")
			return q.Do(t.Context(), 63, func(ctx context.Context, more []kvqueue.Item) error {
				assert.Len(t, more, 19)
				net.endSession()
				<-ctx.Done()
				return nil
			})
		})
		got := map[string]int{}
		for len(got) < len(values) {
			require.NoError(t, other.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
				v := string(items[0].Value)
				first, second := v[:2]+".1", v[:2]+".2"
				assert.Zero(t, got[v], v)
				assert.True(t, v == first || got[first] > 0, "%s before %s", v, first)
				got[v] = items[0].Attempt
				assert.Equal(t, v != second, items[0].Attempt == 2, v)
				return nil
			}))
		}
		assert.Equal(t, kvqueue.Length{}, soundGroups(t, kv, other).Length)
	})
}

// A dead letter of a group is put back before the others of the group.
func TestADeadLetterGoesBackToItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.MaxAttempts(1))
		add(t, q, "a/\xff.1", "a/\xff.2", "a/\xff.3")
		assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)
		assert.Equal(t, []string{"a/\xff.2"}, try(t, q, 5, false))
		letters, err := q.Dead(t.Context(), kvqueue.Key{}, 5)
		require.NoError(t, err)
		require.Len(t, letters, 1)
		assert.Equal(t, "a/\xff", letters[0].Group)
		n, err := q.Requeue(t.Context(), letters[0].Key)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, []string{"a/\xff.1", "a/\xff.2", "a/\xff.3"}, all(t, q))
		for i := 1; i <= 3; i++ {
			assert.Equal(t, []string{fmt.Sprint("a/\xff.", i)}, try(t, q, 5, true))
		}
		soundGroups(t, kv, q)
	})
}

// The claim of one item of a group was acknowledged, its caller does not know, and asks again, at the same time as the next
// item of the group is acknowledged.
func TestTwoEndsOfOneGroupAreInOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q := open(t, net, "q", kvqueue.TTL(time.Hour))
		add(t, q, "a.1", "a.2")
		require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, first []kvqueue.Item) error {
			net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
				net.intercept(nil)
				_, err := kv.Commit(ctx, g, withInner(w))
				assert.NoError(t, err)
				net.off()
				return kvqueue.ErrUnknown
			})
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			assert.ErrorIs(t, q.Ack(short, first...), kvqueue.ErrUnknown)
			net.on()
			time.Sleep(time.Second)
			return q.Do(ctx, 1, func(ctx context.Context, second []kvqueue.Item) error {
				assert.Equal(t, "a.2", string(second[0].Value))
				return q.Ack(ctx, append(second, first...)...)
			})
		}))
		assert.Equal(t, kvqueue.Length{}, soundGroups(t, kv, q).Length)
	})
}
