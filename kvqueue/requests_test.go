package kvqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// Handles on stores that are as slow as a disk, and show changes late, hardly ever spoil each
// other's claims: only while they have not met.
func TestHandlesDoNotSpoilEachOthersClaims(t *testing.T) {
	for _, consumers := range []int{1, 4} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%d consumers, seed %d", consumers, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { spoilt(t, consumers, seed) })
			})
		}
	}
}

func spoilt(t *testing.T, consumers int, seed uint64) {
	const handles, items = 8, 2000
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 7))
	dice := func(n time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(n)))
	}
	kv := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var queues []*kvqueue.Queue
	left := items
	for range handles {
		net := newCut(kv)
		net.delay = func() time.Duration { return time.Millisecond/2 + dice(2*time.Millisecond) }
		q := open(t, net, "q")
		queues = append(queues, q)
		collect(ctx, &all, q, consumers, 1, func([]kvqueue.Item) {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				stop()
			}
		})
	}
	time.Sleep(time.Second)
	in := open(t, kv, "q")
	for n := 0; n < items; n += 10 {
		_, err := in.Enqueue(t.Context(), numbered(10)...)
		require.NoError(t, err)
		if n < items/2 { // then they come faster than they are taken
			time.Sleep(dice(60 * time.Millisecond))
		}
	}
	all.Wait()
	conflicts := int64(0)
	for _, q := range queues {
		conflicts += q.Stats().Conflicts
	}
	t.Logf("%d of %d claims were spoilt", conflicts, items)
	assert.LessOrEqual(t, conflicts, int64(items*2/100))
}
