package kvqueue_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// A lateWatch shows changes late.
type lateWatch struct {
	kvqueue.KV
	by time.Duration
}

func (l lateWatch) Watch(ctx context.Context, from kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		for e, err := range l.KV.Watch(ctx, from, prefixes...) {
			if async.Sleep(ctx, l.by) != nil || !yield(e, err) {
				return
			}
		}
	}
}

// takeNow takes what is ready, acknowledges it, and returns how many items it was.
func takeNow(t *testing.T, q *kvqueue.Queue, most int) (n int) {
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		items, err := q.TryTake(ctx, most)
		n = len(items)
		return err
	}))
	return n
}

// Items that another has assigned to a handle, and that its watch has not shown yet, are not ready any more: TryTake
// looks for those as well before it says that there is nothing.
func TestTryTakeGetsWhatAnotherHasAssignedThoughTheWatchIsLate(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				assigns := open(t, kv, "q")
				assert.Zero(t, takeNow(t, assigns, 1), "it is the first")
				given := open(t, lateWatch{kv, late}, "q")
				assert.Zero(t, takeNow(t, given, 1))
				for i := range 20 {
					_, err := assigns.Enqueue(t.Context(), []byte("a"), []byte("b"), []byte("c"))
					require.NoError(t, err)
					got := takeNow(t, given, 2)
					assert.NotZero(t, got, "round %d", i)
					for got < 3 {
						n := takeNow(t, given, 3)
						require.NotZero(t, n, "round %d: after %d of 3", i, got)
						got += n
					}
					assert.Zero(t, takeNow(t, given, 1), "round %d: they are acknowledged", i)
				}
			})
		})
	}
}
