//go:build linux && kvbudgets

package budgets

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/recipes"
)

// This file is the sides of the rows: what takes items in a turn.

// A result is what consumers have done in a turn.
type result struct {
	rate      float64 // items a second
	conflicts float64 // the share of the transactions that others have spoilt, in percent
	fairness  float64 // how much more the first consumer had than the last
}

func resultOf(each []int64, took time.Duration, tries, conflicts int64) result {
	return result{
		rate:      float64(sum(each)) / took.Seconds(),
		conflicts: 100 * float64(conflicts) / float64(max(1, tries)),
		fairness:  float64(slices.Max(each)) / float64(max(1, slices.Min(each))),
	}
}

// recipe measures one of the recipes.
func (b *bench) recipe(consumers, items int, of func(kvqueue.KV, string) *recipes.Queue) result {
	kv := b.store()
	q := of(kv, b.name()+"/")
	b.fill(items, q.Enqueue)
	each, took := b.run(consumers, func(ctx context.Context, _ int) (int, error) {
		_, ok, err := q.Dequeue(ctx)
		if !ok || err != nil {
			return 0, err
		}
		return 1, nil
	})
	tries, conflicts := q.Tries()
	return resultOf(each, took, tries, conflicts)
}

// etcds measures the queue of etcd. It reads all of the queue for each item, so there are few.
func (b *bench) etcds(consumers, items int) result {
	client, name := b.cluster.Client(b), b.name()+"/"
	q := recipe.NewQueue(client, name)
	b.fill(items, func(_ context.Context, values ...[]byte) error {
		for _, v := range values {
			if err := q.Enqueue(string(v)); err != nil {
				return err
			}
		}
		return nil
	})
	left := atomic.Int64{}
	left.Store(int64(items) - int64(consumers)) // it cannot be told to stop waiting
	each, took := b.run(consumers, func(context.Context, int) (int, error) {
		if left.Add(-1) < 0 {
			return 0, sleep()
		}
		_, err := q.Dequeue()
		return 1, err
	})
	return resultOf(each, took, 0, 0)
}

func sleep() error { time.Sleep(10 * time.Millisecond); return nil }

// ours measures package kvqueue: so many handles, each with a client of its own, as processes have, share the
// consumers.
func (b *bench) ours(handles, consumers, items int) result {
	name := b.name()
	in := b.open(b.store(), name)
	b.fill(items, func(ctx context.Context, values ...[]byte) error {
		_, err := in.Enqueue(ctx, values...)
		return err
	})
	var queues []*kvqueue.Queue
	for range handles {
		queues = append(queues, b.open(b.store(), name))
	}
	each, took := b.run(consumers, func(ctx context.Context, c int) (n int, err error) {
		err = queues[c%handles].Do(ctx, 1, func(context.Context, []kvqueue.Item) error { n = 1; return nil })
		return n, err
	})
	var claimed, conflicts int64
	for _, q := range queues {
		s := q.Stats()
		claimed, conflicts = claimed+s.Claimed, conflicts+s.Conflicts
	}
	return resultOf(each, took, claimed, conflicts)
}

// consumed measures package kvqueue as its users have it: each consumer is a Consume with one worker.
func (b *bench) consumed(handles, consumers, items int) result {
	name := b.name()
	in := b.open(b.store(), name)
	b.fill(items, func(ctx context.Context, values ...[]byte) error {
		_, err := in.Enqueue(ctx, values...)
		return err
	})
	var queues []*kvqueue.Queue
	for range handles {
		queues = append(queues, b.open(b.store(), name))
	}
	each, took := b.run(consumers, func(ctx context.Context, c int) (n int, err error) {
		return n, queues[c%handles].Consume(ctx, 1, 1, func(context.Context, []kvqueue.Item) error { n++; return nil })
	})
	var claimed, conflicts int64
	for _, q := range queues {
		s := q.Stats()
		claimed, conflicts = claimed+s.Claimed, conflicts+s.Conflicts
	}
	return resultOf(each, took, claimed, conflicts)
}

// claimed measures claims alone, of consumers that acknowledge nothing while it lasts.
func (b *bench) claimed(consumers, items int) result {
	q := b.open(b.store(), b.name())
	b.fill(items, func(ctx context.Context, values ...[]byte) error {
		_, err := q.Enqueue(ctx, values...)
		return err
	})
	ended := errors.New("the turn is over")
	var each []int64
	var took time.Duration
	err := async.Scope(b.Context(), func(ctx context.Context) error {
		each, took = b.run(consumers, func(context.Context, int) (int, error) {
			taken, err := q.Take(ctx, 1)
			return len(taken), err
		})
		return ended
	})
	require.ErrorIs(b, err, ended)
	return resultOf(each, took, 0, 0)
}
