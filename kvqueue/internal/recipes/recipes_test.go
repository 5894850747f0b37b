package recipes_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/recipes"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

func TestEachRecipeDeliversEachItemOnce(t *testing.T) {
	for name, of := range map[string]func(kvqueue.KV, string) *recipes.Queue{
		"race":    recipes.RaceHead,
		"staging": recipes.Staging,
		"relaxed": func(kv kvqueue.KV, prefix string) *recipes.Queue { return recipes.Relaxed(kv, prefix, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			kv := memkv.New()
			t.Cleanup(kv.Close)
			q := of(kv, "p/")
			const workers, each = 8, 50
			for i := range workers * each {
				assert.NoError(t, q.Enqueue(t.Context(), fmt.Append(nil, i)))
			}
			var mu sync.Mutex
			got := map[string]int{}
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for range each {
						v, ok, err := q.Dequeue(t.Context())
						assert.NoError(t, err)
						assert.True(t, ok)
						mu.Lock()
						got[string(v)]++
						mu.Unlock()
					}
				})
			}
			all.Wait()
			assert.Len(t, got, workers*each)
		})
	}
}
