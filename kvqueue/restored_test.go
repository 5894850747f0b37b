package kvqueue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// mirror copies all keys to a new store, whose revisions begin anew.
func mirror(t *testing.T, from kvqueue.KV) *memkv.Store {
	t.Helper()
	to := newStore(t)
	results, _, err := from.Read(t.Context(), kvqueue.Range{Begin: []byte("a"), End: []byte("z")})
	require.NoError(t, err)
	var writes []kvqueue.Write
	for _, p := range results[0].Pairs {
		writes = append(writes, kvqueue.Write{Key: p.Key, Value: p.Value})
		if len(writes) == 100 {
			_, err := to.Commit(t.Context(), nil, writes)
			require.NoError(t, err)
			writes = nil
		}
	}
	_, err = to.Commit(t.Context(), nil, writes)
	require.NoError(t, err)
	return to
}

// In a store that was mirrored the revisions begin anew: what is added comes behind what
// was there, whether the floor had moved or not.
func TestInAMirroredStoreItemsComeBehindThoseBefore(t *testing.T) {
	for name, before := range map[string]int{"the floor has not moved": 0, "the floor has moved": 2000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := newStore(t)
				q := open(t, first, "q", kvqueue.MaxAttempts(1))
				take := func(q *kvqueue.Queue) (value string) {
					require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
						value = string(items[0].Value)
						return nil
					}))
					return value
				}
				for i := range before {
					_, err := q.Enqueue(t.Context(), fmt.Append(nil, i))
					require.NoError(t, err)
				}
				for range before {
					take(q)
				}
				for i := range 50 {
					_, err := q.Enqueue(t.Context(), fmt.Append(nil, "old ", i))
					require.NoError(t, err)
				}
				assert.ErrorIs(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return errFails }), errFails)

				second := mirror(t, first)
				r := open(t, second, "q")
				for i := range 50 {
					_, err := r.Enqueue(t.Context(), fmt.Append(nil, "new ", i))
					require.NoError(t, err)
				}
				for i := 1; i < 50; i++ {
					assert.Equal(t, fmt.Sprint("old ", i), take(r))
				}
				letters, err := r.Dead(t.Context(), kvqueue.Key{}, 1)
				require.NoError(t, err)
				require.Len(t, letters, 1)
				_, err = r.Requeue(t.Context(), letters[0].Key)
				require.NoError(t, err)
				assert.Equal(t, "old 0", take(r), "its place is before the new ones")
				for i := range 50 {
					assert.Equal(t, fmt.Sprint("new ", i), take(r))
				}
				n, err := r.Len(t.Context())
				require.NoError(t, err)
				assert.Equal(t, kvqueue.Length{}, n)
			})
		})
	}
}

// The ids of items that are gone are told by hints, too: in a mirrored store none goes too early, and none stays for longer, and
// Audit finds nothing wrong with them.
func TestIDsInAMirroredStoreStandForTheirRetention(t *testing.T) {
	for name, pause := range map[string]time.Duration{"a mark is running": 0, "none is": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := newStore(t)
				q := open(t, first, "q", kvqueue.Retention(time.Minute))
				for i := range 50 {
					addOnce(t, q, "old", fmt.Sprint("old ", i))
					consumed(t, q)
				}
				time.Sleep(50 * time.Second) // marks are made, and the floor stays
				require.NoError(t, q.Close(t.Context()))
				time.Sleep(pause)

				second := mirror(t, first)
				r := open(t, second, "q")
				k := addOnce(t, r, "new", "new")
				consumed(t, r)
				sound(t, r)
				for range 10 {
					time.Sleep(5 * time.Second)
					assert.Equal(t, k, addOnce(t, r, "new", "new"), "it is younger than the retention")
				}
				time.Sleep(2 * time.Minute)
				assert.Zero(t, keys(t, second, "i"))
				sound(t, r)
			})
		})
	}
}
