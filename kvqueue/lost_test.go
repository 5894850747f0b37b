package kvqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// The session of a handle ends while two items are being settled and two are not. The outcome of the
// first two is known later: one is done, the other is lost.
func TestEachClaimIsToldOnceThoughTheSessionEndsAsItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newCut(newStore(t))
		var told [kvqueue.Lost + 1]atomic.Int64
		q := open(t, net, "q", kvqueue.Observe(func(r kvqueue.Report) { told[r.Kind].Add(int64(r.Items)) }))
		for _, item := range []string{"a", "b", "c", "d"} {
			_, err := q.Enqueue(t.Context(), []byte(item))
			require.NoError(t, err)
		}
		_ = q.Do(t.Context(), 4, func(ctx context.Context, items []kvqueue.Item) error {
			require.Len(t, items, 4)
			settling, goOn := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error {
				if once.CompareAndSwap(false, true) {
					close(settling)
					<-goOn
				}
				return nil
			})
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- q.Ack(context.WithoutCancel(ctx), items[0]) }()
			<-settling
			go func() { second <- q.Ack(context.WithoutCancel(ctx), items[1]) }()
			synctest.Wait()
			q.Expire()
			require.ErrorIs(t, items[2].Err(), kvqueue.ErrLost)
			synctest.Wait()
			assert.EqualValues(t, 2, told[kvqueue.Lost].Load(), "those that nobody was settling")
			close(goOn)
			assert.NoError(t, <-first)
			assert.ErrorIs(t, <-second, kvqueue.ErrLost)
			assert.ErrorIs(t, q.Ack(ctx, items[2]), kvqueue.ErrLost)
			return nil
		})
		synctest.Wait() // the observer is told behind the call
		assert.EqualValues(t, 1, told[kvqueue.Acked].Load())
		assert.EqualValues(t, 3, told[kvqueue.Lost].Load())
	})
}
