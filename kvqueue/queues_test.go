package kvqueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A counting store counts the keys that were read of it.
type counting struct {
	kvqueue.KV
	keys int
}

func (c *counting) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	results, rev, err := c.KV.Read(ctx, ranges...)
	for _, r := range results {
		c.keys += len(r.Pairs)
	}
	return results, rev, err
}

// The queues of a store are found whatever their names are, by reads of which none shows more than a key, and only those of the prefix.
func TestQueuesAreFoundWithoutTheirItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &counting{KV: newStore(t)}
		names := []string{"a", "a/b", "a.b", "%2F", "\xff \n", "z", "a0", "a-", strings.Repeat("\x00", 1024)}
		for _, name := range names {
			q := open(t, kv, name)
			_, err := q.Enqueue(t.Context(), numbered(200)...)
			require.NoError(t, err)
		}
		open(t, kv, "empty")
		open(t, kv, "elsewhere", kvqueue.Prefix("kvq/a"))
		open(t, kv, "elsewhere", kvqueue.Prefix("kvq0"))
		kv.keys = 0
		got, err := kvqueue.Queues(t.Context(), kv)
		require.NoError(t, err)
		want := append(slices.Clone(names), "empty")
		slices.Sort(want)
		assert.Equal(t, want, got)
		assert.LessOrEqual(t, kv.keys, 2*len(want))
		got, err = kvqueue.Queues(t.Context(), kv, kvqueue.Prefix("kvq/a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"elsewhere"}, got)
		got, err = kvqueue.Queues(t.Context(), kv, kvqueue.Prefix("nothing"))
		require.NoError(t, err)
		assert.Empty(t, got)
	})
}

// Keys that nobody understands are no queues, and hide none.
func TestForeignKeysAreNoQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		open(t, kv, "m")
		foreign := []string{"kvq/", "kvq//h", "kvq/a", "kvq/a/b/c", "kvq/l%6d/h", "kvq/%zz/h", "kvq/z", "kvq/m/garbage", "h", "kvq0"}
		var writes []kvqueue.Write
		for _, key := range foreign {
			writes = append(writes, kvqueue.Write{Key: []byte(key)})
		}
		_, err := kv.Commit(t.Context(), nil, writes)
		require.NoError(t, err)
		got, err := kvqueue.Queues(t.Context(), kv)
		require.NoError(t, err)
		assert.Equal(t, []string{"m"}, got)
	})
}

// A denying store denies reads after so many.
type denying struct {
	kvqueue.KV
	after int
}

func (d *denying) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if d.after--; d.after < 0 {
		return nil, 0, errDenied
	}
	return d.KV.Read(ctx, ranges...)
}

func TestQueuesOfAStoreThatFailsAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		for i := range 3 {
			open(t, kv, fmt.Sprint(i))
		}
		for reads := range 7 {
			names, err := kvqueue.Queues(t.Context(), &denying{kv, reads})
			require.ErrorIs(t, err, errDenied)
			assert.Nil(t, names, "no list that looks like all")
		}
		var wrong *kvqueue.InvalidError
		_, err := kvqueue.Queues(t.Context(), kv, nil)
		assert.ErrorAs(t, err, &wrong)
		_, err = kvqueue.Queues(t.Context(), kv, kvqueue.Prefix(""))
		assert.ErrorAs(t, err, &wrong)
	})
}
