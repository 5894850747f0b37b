package kvqueue_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// Whatever becomes of the answer to the first try, what is wanted is done once.
func TestATransactWhoseAnswerIsLostIsDoneOnce(t *testing.T) {
	for _, fault := range []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late} {
		synctest.Test(t, func(t *testing.T) {
			var spoilt atomic.Bool
			kv := memkv.New(memkv.Faults(func(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
				for _, w := range writes {
					if string(w.Key) == "order" && !spoilt.Swap(true) {
						return fault
					}
				}
				return memkv.None
			}))
			defer kv.Close()
			q := open(t, kv, "q")
			require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
				tx.If(kvqueue.Guard{Key: []byte("other"), Is: kvqueue.Absent})
				tx.Put([]byte("order"), nil)
				tx.Enqueue(q, []byte("a"))
			}))
			assert.True(t, spoilt.Load())
			n, err := q.Len(t.Context())
			require.NoError(t, err)
			assert.Equal(t, kvqueue.Length{Ready: 1}, n, fault)
		})
	}
}

// A guard that its own writes make false must not have what was done look as if it was refused.
func TestATransactThatWasDoneIsNotRefusedByWhatItWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spoilt atomic.Bool
		kv := memkv.New(memkv.Faults(func(_ []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
			if string(writes[len(writes)-1].Key) == "order" && !spoilt.Swap(true) {
				return memkv.Unanswered
			}
			return memkv.None
		}))
		defer kv.Close()
		q := open(t, kv, "q")
		require.NoError(t, q.Transact(t.Context(), func(tx *kvqueue.Tx) {
			tx.If(kvqueue.Guard{Key: []byte("order"), Is: kvqueue.Absent})
			tx.Put([]byte("order"), nil)
		}))
		assert.True(t, spoilt.Load())
	})
}
