package kvqueue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// BenchmarkConsume measures what an item costs from Enqueue to its acknowledgement, with so
// many consumers of one handle, on a store that costs little.
func BenchmarkConsume(b *testing.B) {
	for _, consumers := range []int{1, 32} {
		b.Run(fmt.Sprint(consumers), func(b *testing.B) {
			kv := memkv.New()
			defer kv.Close()
			q, err := kvqueue.Open(b.Context(), kv, "q")
			require.NoError(b, err)
			defer func() { require.NoError(b, q.Close(context.Background())) }()
			items := make([][]byte, b.N)
			for i := range items {
				items[i] = []byte("an item")
			}
			_, err = q.Enqueue(b.Context(), items...)
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var n atomic.Int64
			_ = q.Consume(ctx, consumers, 1, func(context.Context, []kvqueue.Item) error {
				if n.Add(1) == int64(b.N) {
					stop()
				}
				return nil
			})
			require.Equal(b, int64(b.N), n.Load())
		})
	}
}
