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
)

// This file is about groups together with what else can be done to items: purge, dead letters, and ids.

func TestPurgeDeletesTheItemsOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		add(t, q, "a.1", "x", "a.2", "b.1")
		time.Sleep(time.Hour)
		add(t, q, "a.3", "y", "c.1")
		n, err := q.Purge(t.Context(), kvqueue.Filter{Before: time.Now().Add(-time.Minute)})
		require.NoError(t, err)
		assert.Equal(t, 4, n)
		a := soundGroups(t, kv, q)
		assert.Equal(t, kvqueue.Length{Ready: 3, Grouped: 2}, a.Length)
		assert.ElementsMatch(t, []string{"a.3", "y", "c.1"}, try(t, q, 9, true), "each group goes on")
		add(t, q, "b.2")
		assert.Equal(t, []string{"b.2"}, try(t, q, 9, true))
		soundGroups(t, kv, q)
	})
}

func TestAPurgeLeavesWhatIsClaimedOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		add(t, q, "a.1", "a.2")
		require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
			n, err := q.Purge(t.Context(), kvqueue.Filter{})
			assert.Equal(t, 1, n)
			soundGroups(t, kv, q)
			return err
		}))
		assert.Equal(t, kvqueue.Length{}, soundGroups(t, kv, q).Length)
	})
}

func TestDeadLettersOfGroupsByAFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.MaxAttempts(1))
		began := time.Now()
		add(t, q, "fire.1", "fire.2", "fire.3")
		for range 3 {
			broken := errors.New("out of paper")
			require.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return broken }), broken)
		}
		assert.Empty(t, foundDead(t, q, kvqueue.Filter{Why: "fire"}), "that is the group, and not the error")
		for l, err := range q.FindDead(t.Context(), kvqueue.Filter{Why: "paper", Most: 1}) {
			require.NoError(t, err)
			assert.Equal(t, "out of paper", l.Why)
			assert.Equal(t, "fire", l.Group)
			assert.True(t, began.Equal(l.Added), "%v", l.Added)
		}
		n, err := q.DiscardAll(t.Context(), kvqueue.Filter{Most: 1})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		n, err = q.RequeueAll(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		soundGroups(t, kv, q)
		assert.Equal(t, []string{"fire.2"}, try(t, q, 9, true))
		assert.Equal(t, []string{"fire.3"}, try(t, q, 9, true))
		soundGroups(t, kv, q)
	})
}

func TestAnItemWithAnIDAndAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		one := func(id, group string) kvqueue.Key {
			k, err := q.Add(t.Context(), []byte(id), kvqueue.ID(id), kvqueue.Group(group))
			require.NoError(t, err)
			return k
		}
		first := one("1", "a")
		add(t, q, "a.2")
		require.NoError(t, q.Do(t.Context(), 9, func(_ context.Context, items []kvqueue.Item) error {
			require.Len(t, items, 1)
			assert.Equal(t, "a", items[0].Group)
			assert.Equal(t, first, one("1", "a"), "while it is claimed")
			soundGroups(t, kv, q)
			return nil
		}))
		assert.Equal(t, first, one("1", "b"), "when it is gone, and whatever the group")
		require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
			tx.Add(q, []byte("1"), kvqueue.Group("a"), kvqueue.ID("1"))
			tx.Add(q, []byte("3"), kvqueue.Group("a"), kvqueue.ID("3"))
		}))
		assert.Equal(t, kvqueue.Length{Ready: 2, Grouped: 2}, soundGroups(t, kv, q).Length)
		assert.Equal(t, []string{"a.2"}, try(t, q, 9, true))
		assert.Equal(t, []string{"3"}, try(t, q, 9, true))
		soundGroups(t, kv, q)
	})
}

// Items that come to a group while it is purged stay, or are deleted: a purge ends though items come as fast as it deletes them.
func TestAPurgeEndsThoughItemsComeToAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		q, producer := open(t, net, "q"), open(t, kv, "q")
		some := slices.Repeat([]string{"a.1"}, 63)
		for range 5 {
			add(t, producer, some...)
		}
		purges := 0
		net.intercept(func(_ []kvqueue.Guard, w []kvqueue.Write) error {
			if bytes.HasPrefix(w[0].Key, []byte("kvq/q/g/")) && w[0].Delete && purges < 20 {
				purges++
				add(t, producer, some...)
			}
			return nil
		})
		n, err := q.Purge(t.Context(), kvqueue.Filter{})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, n, 5*63)
		assert.Less(t, purges, 10)
	})
}
