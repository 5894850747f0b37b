package sqlitekv_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// BenchmarkCommit is a transaction with two writes, by so many at once. They share
// transactions of the file.
func BenchmarkCommit(b *testing.B) {
	for name, options := range map[string][]sqlitekv.Option{"sync": nil, "nosync": {sqlitekv.NoSync()}} {
		for _, callers := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				s := openFile(b, newPath(b), options...)
				var n atomic.Int64
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
							_, err := s.Commit(b.Context(), nil, []kvqueue.Write{{Key: fmt.Append(nil, "d/", i), Value: make([]byte, 100)}, {Key: fmt.Append(nil, "q/", i)}})
							require.NoError(b, err)
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// BenchmarkConsume is an item that is claimed and acknowledged, by eight consumers: those of one
// process, or of four.
func BenchmarkConsume(b *testing.B) {
	for _, processes := range []int{1, 4} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			path := newPath(b)
			var queues []*kvqueue.Queue
			for range processes { // each has a store of its own on the file
				q, err := kvqueue.Open(b.Context(), openFile(b, path), "q")
				require.NoError(b, err)
				defer func() { require.NoError(b, q.Close(context.Background())) }()
				queues = append(queues, q)
			}
			for left := b.N; left > 0; left -= 63 {
				_, err := queues[0].Enqueue(b.Context(), make([][]byte, min(left, 63))...)
				require.NoError(b, err)
			}
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var n atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for _, q := range queues {
				all.Go(func() {
					_ = q.Consume(ctx, 8/processes, 1, func(context.Context, []kvqueue.Item) error {
						if n.Add(1) == int64(b.N) {
							stop()
						}
						return nil
					})
				})
			}
			all.Wait()
			b.StopTimer()
			conflicts := int64(0)
			for _, q := range queues {
				conflicts += q.Stats().Conflicts
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
			b.ReportMetric(float64(conflicts)/float64(b.N), "conflicts/item")
		})
	}
}
