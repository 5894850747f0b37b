package sqlitekv_test

import (
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
