package proof_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A changing store writes something else than it was asked for.
type changing struct {
	kvqueue.KV
	writes func(writes []kvqueue.Write) []kvqueue.Write
}

func (c *changing) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	return c.KV.Commit(ctx, guards, c.writes(slices.Clone(writes)))
}

// unfindable adds items that are in no place, so nobody finds them.
func unfindable(writes []kvqueue.Write) []kvqueue.Write {
	if !slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return is(w, "d") && !w.Delete }) {
		return writes
	}
	return slices.DeleteFunc(writes, func(w kvqueue.Write) bool { return is(w, "q") })
}

// undying makes an item that is acknowledged ready again, each time, and lets handles look there.
func undying(writes []kvqueue.Write) []kvqueue.Write {
	for i, w := range writes {
		if is(w, "d") && w.Delete {
			writes[i] = kvqueue.Write{Key: slices.Concat([]byte("kvq/q/q/"), w.Key[len(w.Key)-20:]), Value: []byte{0, 0, 1}}
			lowest := make([]byte, 16)
			return append(writes, kvqueue.Write{Key: []byte("kvq/q/h"), Value: lowest})
		}
	}
	return writes
}

func is(w kvqueue.Write, kind string) bool { return bytes.HasPrefix(w.Key, []byte("kvq/q/"+kind+"/")) }

// A queue may be broken so that its items never go. A history of it ends after a number of steps,
// and is not one of a queue.
func TestAHistoryOfAQueueThatNeverIsEmptyEnds(t *testing.T) {
	for name, c := range map[string]struct {
		writes func([]kvqueue.Write) []kvqueue.Write
		says   string
	}{
		"nobody finds an item":      {unfindable, "something is left"},
		"an item comes for ever":    {undying, "the history does not end"},
		"nothing is broken with it": {func(writes []kvqueue.Write) []kvqueue.Write { return writes }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := proof.NewHistory(1)
			synctest.Test(t, func(t *testing.T) {
				h.Exact = true
				store := memkv.New()
				defer store.Close()
				kv := &changing{store, c.writes}
				client, err := proof.NewClient(t.Context(), h, "0", proof.NewDice(1), kv, proof.Direct, proof.Limits()...)
				require.NoError(t, err)
				h.Record(t, kv, []*proof.Client{client}, 1, nil)
			})
			result, faults := h.Verdict()
			if c.says == "" {
				assert.Equal(t, porcupine.Ok, result, faults)
				return
			}
			assert.Equal(t, porcupine.Illegal, result)
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], c.says)
		})
	}
}
