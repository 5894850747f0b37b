//go:build linux && kvbudgets

package budgets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// TestEnqueue is K2: how many transactions of enqueues others have spoilt, with consumers under way.
func TestEnqueue(t *testing.T) {
	b := newBench(t)
	name := b.name()
	var tries, spoilt atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	var consumer sync.WaitGroup
	out := b.open(b.store(), name)
	consumer.Go(func() {
		_ = out.Consume(ctx, 8, 1, func(context.Context, []kvqueue.Item) error { return nil })
	})
	var queues []*kvqueue.Queue
	for range 8 {
		queues = append(queues, b.open(&counted{b.store(), adds, &tries, &spoilt}, name))
	}
	took := turns(rounds, func() result {
		tries.Store(0)
		spoilt.Store(0)
		each, took := b.run(32, func(ctx context.Context, c int) (int, error) {
			_, err := queues[c%8].Enqueue(ctx, []byte("x"))
			return 1, err
		})
		return resultOf(each, took, tries.Load(), spoilt.Load())
	})[0]
	cancel()
	consumer.Wait()
	tell(row{ID: "K2", What: "enqueues, one a call, 32 goroutines of 8 handles, 8 consumers", Unit: "/s", Ours: valuesOf(took, rate)})
	tell(row{ID: "K2", What: "enqueues of 8 handles: conflicts", Unit: "%", Ours: valuesOf(took, conflicts), Budget: atMost(0.1)})
}

// A counted is a store that counts transactions, and those that others have spoilt.
type counted struct {
	kvqueue.KV
	counts           func(writes []kvqueue.Write) bool
	tries, conflicts *atomic.Int64
}

func (c *counted) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	rev, err := c.KV.Commit(ctx, guards, writes)
	if c.counts(writes) {
		c.tries.Add(1)
		if errors.Is(err, kvqueue.ErrConflict) {
			c.conflicts.Add(1)
		}
	}
	return rev, err
}

// adds says whether a transaction adds payloads.
func adds(writes []kvqueue.Write) bool {
	return slices.ContainsFunc(writes, func(w kvqueue.Write) bool { return !w.Delete && strings.Contains(string(w.Key), "/d/") })
}

// TestDepth is K3: how long a dequeue takes, by the length of the queue. The items of a turn are added again before the next.
func TestDepth(t *testing.T) {
	const each = 50
	b := newBench(t)
	depths := []int{100, 1000, 10_000, 100_000}
	var sides []func() float64
	for _, depth := range depths {
		q := b.open(b.store(), b.name())
		add := func(ctx context.Context, values ...[]byte) error {
			_, err := q.Enqueue(ctx, values...)
			return err
		}
		b.fill(depth, add)
		sides = append(sides, func() float64 {
			begin := time.Now()
			for range each {
				require.NoError(b, q.Do(b.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
			}
			took := time.Since(begin)
			b.fill(each, add)
			return took.Seconds() * 1e3 / each
		})
	}
	took := make([][]float64, len(sides))
	for round := range 9 {
		for i := range sides {
			i = (i + round) % len(sides)
			took[i] = append(took[i], sides[i]())
		}
	}
	for i, depth := range depths[1:] {
		tell(beside("K3", fmt.Sprintf("an item of a queue of %d", depth), took[i+1], fmt.Sprintf("of %d", depths[0]), took[0], "ms", atMost(1.3)))
	}
}
