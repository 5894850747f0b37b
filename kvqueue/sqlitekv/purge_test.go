package sqlitekv_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// Handles with stores of their own on one file add, consume and purge beside each other: each item was acknowledged or
// deleted, once, and the counts say so.
func TestEachItemIsConsumedOrPurged(t *testing.T) {
	const batches, each, handles = 30, 63, 3
	path := newPath(t)
	var acked, purged atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute) // it ends with the last item
	defer stop()
	ended := func() bool { return acked.Load()+purged.Load() == handles*batches*each }
	var all sync.WaitGroup
	var queues []*kvqueue.Queue
	for range handles {
		q, err := kvqueue.Open(t.Context(), openFile(t, path, sqlitekv.NoSync()), "q")
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close(context.Background())) }()
		queues = append(queues, q)
	}
	for _, q := range queues {
		all.Go(func() {
			for range batches {
				_, err := q.Enqueue(ctx, slices.Repeat([][]byte{[]byte("x")}, each)...)
				assert.NoError(t, err)
			}
		})
		all.Go(func() {
			_ = q.Consume(ctx, 2, 2, func(ctx context.Context, items []kvqueue.Item) error {
				if err := q.Ack(context.WithoutCancel(ctx), items...); err != nil {
					return err
				}
				if acked.Add(int64(len(items))); ended() {
					stop()
				}
				return nil
			})
		})
		all.Go(func() {
			for ctx.Err() == nil {
				n, err := q.Purge(context.WithoutCancel(ctx), kvqueue.Filter{Most: 10})
				if !assert.NoError(t, err) {
					stop()
				}
				if purged.Add(int64(n)); ended() {
					stop()
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, handles*batches*each, acked.Load()+purged.Load())
	a, err := queues[0].Audit(t.Context())
	require.NoError(t, err)
	assert.Equal(t, kvqueue.Length{}, a.Length)
	assert.Empty(t, a.Faults)
	t.Log(acked.Load(), "acknowledged,", purged.Load(), "purged")
}
