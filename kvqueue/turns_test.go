package kvqueue_test

import (
	"context"
	"fmt"
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

	"github.com/ambit-go/ambit/kvqueue"
)

// While a group waits that is not held no other is given two items more, and while items of no group wait as many of them are claimed as of
// groups, with one more or less.
func TestGroupsAndItemsOfNoGroupTakeTurns(t *testing.T) {
	for _, most := range []int{1, 7} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const groups, each = 100, 5
				kv := newStore(t)
				q := open(t, kv, "q")
				for n := range each {
					for g := range groups {
						add(t, q, fmt.Sprintf("%03d.%d", g, n))
					}
				}
				for n := range groups * each {
					add(t, q, fmt.Sprint(n))
				}
				given, without, with := make([]int, groups), 0, 0
				for without < groups*each {
					values := try(t, q, most, true)
					require.NotEmpty(t, values)
					for _, v := range values {
						group, n, is := strings.Cut(v, ".")
						if !is {
							assert.Equal(t, fmt.Sprint(without), v)
							without++
							continue
						}
						with++
						g, err := strconv.Atoi(group)
						require.NoError(t, err)
						assert.Equal(t, fmt.Sprint(given[g]), n, "of %d", g)
						given[g]++
					}
					assert.LessOrEqual(t, slices.Max(given)-slices.Min(given), 1, "%v", given)
					assert.LessOrEqual(t, max(with-without, without-with), 1)
				}
				assert.LessOrEqual(t, groups*each-with, most)
			})
		})
	}
}

// A claim has one item of each group at most, and those of no group in order.
func TestAClaimHasOneItemOfEachGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		add(t, q, "a.1", "a.2", "1", "b.1", "2", "b.2", "3")
		assert.ElementsMatch(t, []string{"1", "a.1", "2", "b.1", "3"}, try(t, q, 10, true))
		assert.ElementsMatch(t, []string{"a.2", "b.2"}, try(t, q, 10, true))
	})
}

// Consumers of several handles are busy with more groups than a transaction holds: each group is in order, and no transaction is too large.
func TestManyConsumersOfManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups, each = 100, 5
		kv := newStore(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		got, at, total := map[string][]string{}, map[string]int{}, 0
		var consumers sync.WaitGroup
		for range 3 {
			q := open(t, kv, "q", kvqueue.Observe(func(r kvqueue.Report) { assert.NotEqual(t, kvqueue.StoreFailed, r.Kind, r.Why) }))
			consumers.Go(func() {
				_ = q.Consume(ctx, 40, 3, func(ctx context.Context, items []kvqueue.Item) error {
					mu.Lock()
					for _, i := range items {
						if at[i.Group]++; i.Group != "" {
							assert.Equal(t, 1, at[i.Group], "of %s", i.Group)
						}
						got[i.Group] = append(got[i.Group], string(i.Value))
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					for _, i := range items {
						at[i.Group]--
					}
					if total += len(items); total == 2*groups*each {
						stop()
					}
					return nil
				})
			})
		}
		in := open(t, kv, "q")
		for n := range each {
			for g := range groups {
				add(t, in, fmt.Sprintf("%d.%d", g, n), fmt.Sprint(n, g))
			}
		}
		consumers.Wait()
		for g := range groups {
			assert.Equal(t, []string{fmt.Sprint(g, ".0"), fmt.Sprint(g, ".1"), fmt.Sprint(g, ".2"), fmt.Sprint(g, ".3"), fmt.Sprint(g, ".4")}, got[fmt.Sprint(g)])
		}
		soundGroups(t, kv, in)
	})
}

// The markers of groups without ready items go, also while an item of theirs is claimed.
func TestMarkersThatSayNothingGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.RetryDelay(time.Hour, time.Hour))
		const groups = 150
		for g := range groups {
			add(t, q, fmt.Sprintf("%d.1", g))
		}
		for range groups {
			_ = q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails })
		}
		for range 5 { // as many transactions delete them
			assert.Empty(t, try(t, q, 1, true))
			time.Sleep(time.Second)
		}
		assert.Zero(t, keys(t, kv, "m"))
		assert.Equal(t, groups, keys(t, kv, "g"), "they are held")
		for g := range groups {
			add(t, q, fmt.Sprintf("%d.2", g))
		}
		assert.Empty(t, try(t, q, 1, true))
		soundGroups(t, kv, q)
		taken := 0
		for time.Sleep(2 * time.Hour); len(try(t, q, 1, true)) > 0; {
			taken++
		}
		assert.Equal(t, 2*groups, taken)
		for range 5 {
			time.Sleep(time.Second)
			assert.Empty(t, try(t, q, 1, true))
		}
		time.Sleep(time.Second)
		assert.Zero(t, keys(t, kv, "m")+keys(t, kv, "g")+keys(t, kv, "d"))
		soundGroups(t, kv, q)
	})
}

// An item is added as the marker of its group is about to be deleted, because the group was seen to be empty.
func TestTheMarkerOfAGroupThatIsNotEmptyAnyMoreStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q, in := open(t, net, "q"), open(t, kv, "q")
		add(t, in, "a.1")
		assert.Equal(t, []string{"a.1"}, try(t, q, 1, true))
		var once atomic.Bool
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if len(w) == 1 && strings.HasPrefix(string(w[0].Key), "kvq/q/m/") && once.CompareAndSwap(false, true) {
				add(t, in, "a.2")
			}
			return nil
		})
		assert.Equal(t, []string{"a.2"}, try(t, q, 1, true), "it comes while this waits")
		assert.True(t, once.Load())
		soundGroups(t, kv, q)
	})
}

// The end of a claim lets another process have the next of the group at once.
func TestTheEndOfAClaimWakesOthersForItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q, other := open(t, kv, "q"), open(t, kv, "q")
		add(t, q, "a.1", "a.2")
		var ended, began time.Time
		var all sync.WaitGroup
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
			all.Go(func() {
				assert.NoError(t, other.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
					began = time.Now()
					return nil
				}))
			})
			time.Sleep(time.Second)
			ended = time.Now()
			return nil
		}))
		all.Wait()
		assert.Less(t, began.Sub(ended), 100*time.Millisecond)
	})
}
