package kvqueue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// The first item of a group makes the layout one that programs without groups refuse, and no other item does.
func TestTheFirstItemOfAGroupRaisesTheVersionOfTheLayout(t *testing.T) {
	for name, first := range map[string]func(t *testing.T, q *kvqueue.Queue){
		"Add": func(t *testing.T, q *kvqueue.Queue) { add(t, q, "a.1") },
		"Transact": func(t *testing.T, q *kvqueue.Queue) {
			require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
				tx.Add(q, []byte("a.1"), kvqueue.Group("a"))
				tx.Add(q, []byte("a.2"), kvqueue.Group("a"))
				tx.Enqueue(q, []byte("1"))
			}))
		},
		"Commit": func(t *testing.T, q *kvqueue.Queue) {
			require.NoError(t, q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
				return q.Commit(ctx, items, func(tx *kvqueue.Tx) { tx.Add(q, []byte("a.1"), kvqueue.Group("a")) })
			}))
		},
	} {
		for _, before := range []string{"", "1", "2"} {
			t.Run(name+before, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					kv := newStore(t)
					version := kvqueue.Range{Begin: []byte("kvq/q/v")}
					if before != "" {
						_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: version.Begin, Value: []byte(before)}})
						require.NoError(t, err)
					}
					q := open(t, kv, "q")
					add(t, q, "0")
					results, _, err := kv.Read(t.Context(), version)
					require.NoError(t, err)
					if before == "" {
						assert.Empty(t, results[0].Pairs)
					}
					first(t, q)
					results, _, err = kv.Read(t.Context(), version)
					require.NoError(t, err)
					require.Len(t, results[0].Pairs, 1)
					assert.Equal(t, "2", string(results[0].Pairs[0].Value))
					soundGroups(t, kv, q)
				})
			})
		}
	}
}

// A transaction of the caller's may hold items of groups, each with its marker, or is refused before it is sent.
func TestATransactionOfManyGroupsFitsOrIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		for n, fits := range map[int]bool{31: true, 64: false} {
			err := q.Transact(t.Context(), func(tx *kvqueue.Tx) {
				for i := range n {
					tx.Add(q, nil, kvqueue.Group(strings.Repeat("x", i+1)))
				}
			})
			assert.Equal(t, !fits, err != nil, "%v", err)
		}
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{Ready: 31, Grouped: 31}, n)
		require.NoError(t, q.Do(t.Context(), 40, func(ctx context.Context, items []kvqueue.Item) error {
			assert.Len(t, items, 31)
			return q.Commit(ctx, items, nil)
		}))
		soundGroups(t, kv, q)
	})
}

func TestAGroupThatMakesNoSenseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q")
		var invalid *kvqueue.InvalidError
		for _, options := range [][]kvqueue.AddOption{{kvqueue.Group("")}, {kvqueue.Group(strings.Repeat("x", 129))}, {nil}} {
			_, err := q.Add(t.Context(), nil, options...)
			assert.ErrorAs(t, err, &invalid)
			assert.ErrorAs(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) { tx.Add(q, nil, options...) }), &invalid)
		}
		longest := strings.Repeat("\xff", 128)
		_, err := q.Add(t.Context(), []byte("x"), kvqueue.Group(longest))
		require.NoError(t, err)
		items, err := q.Peek(t.Context(), 2)
		require.NoError(t, err)
		require.Len(t, items, 1)
		assert.Equal(t, longest, items[0].Group)
		assert.Equal(t, []string{"x"}, try(t, q, 1, true))
	})
}

// Audit names what is wrong with a group; what nobody understands stops nothing.
func TestAnAuditNamesWhatIsWrongWithAGroup(t *testing.T) {
	for says, wrong := range map[string]func(claim kvqueue.Pair) []kvqueue.Write{
		"and no marker: nobody finds them":  func(kvqueue.Pair) []kvqueue.Write { return []kvqueue.Write{{Key: []byte("kvq/q/m/b"), Delete: true}} },
		"the group is not held":             func(kvqueue.Pair) []kvqueue.Write { return []kvqueue.Write{{Key: []byte("kvq/q/g/a/"), Delete: true}} },
		"nobody lets it go on":              func(kvqueue.Pair) []kvqueue.Write { return []kvqueue.Write{{Key: []byte("kvq/q/g/c/")}} },
		"several items are claimed at once": func(claim kvqueue.Pair) []kvqueue.Write { return []kvqueue.Write{beside(claim)} },
		"that this package did not write: \"kvq/q/m/%\"": func(kvqueue.Pair) []kvqueue.Write {
			return []kvqueue.Write{{Key: []byte("kvq/q/m/%")}}
		},
		"that this package did not write: \"kvq/q/g/b/x\"": func(kvqueue.Pair) []kvqueue.Write {
			return []kvqueue.Write{{Key: []byte("kvq/q/g/b/x")}}
		},
	} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				q := open(t, kv, "q")
				add(t, q, "a.1", "b.1", "b.2")
				require.NoError(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error {
					soundGroups(t, kv, q)
					claims, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/w/"), End: []byte("kvq/q/w0")})
					require.NoError(t, err)
					_, err = kv.Commit(t.Context(), nil, wrong(claims[0].Pairs[0]))
					require.NoError(t, err)
					a, err := q.Audit(t.Context())
					require.NoError(t, err)
					assert.Contains(t, strings.Join(a.Faults, "\n"), says)
					return nil
				}))
			})
		})
	}
}

// beside is a claim beside another, of a session that there is not.
func beside(claim kvqueue.Pair) kvqueue.Write {
	key := []byte(string(claim.Key))
	copy(key[len("kvq/q/w/"):], "00000000000000aa")
	key[len(key)-1]++
	return kvqueue.Write{Key: key, Value: claim.Value}
}
