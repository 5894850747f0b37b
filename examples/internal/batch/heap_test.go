package batch

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What one batch has waited with is gone when the next one waits.
func TestManyBatchesCostNoMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	synctest.Test(t, func(t *testing.T) {
		flushed := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, Limits{Age: time.Second}, func(context.Context) error { flushed++; return nil })
			var before uint64
			for i := range 10_000 {
				if i == 100 {
					before = heap()
				}
				b.Added(1)
				if err := async.Sleep(ctx, 2*time.Second); err != nil {
					return err
				}
			}
			assert.Less(t, heap(), before+256<<10)
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 10_000, flushed)
	})
}
