package main

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// measureClaim is T7: how long one claim of ten tasks takes, in queues of different
// sizes, in turns. Half of the tasks are due.
func measureClaim(b *bench) {
	sizes := []int{1_000, 10_000, 100_000, 1_000_000}
	b.server.empty(b.ctx)
	client := b.server.client()
	defer func() { must(client.Close()) }()
	tasks, err := redisstore.New(b.ctx, client)
	must(err)
	defer func() { must(tasks.Close()) }()
	for _, n := range sizes {
		q, err := taskqueue.New(tasks)
		must(err)
		fill(b, q.In(fmt.Sprint(n)), n, func(i int, t *taskqueue.Task) {
			if i%2 == 0 {
				t.Delay = time.Hour
			}
		})
	}
	const turns, each = 400, 10
	took := make([][]time.Duration, len(sizes))
	for turn := range turns {
		for i := range sizes {
			i = (i + turn) % len(sizes)
			took[i] = append(took[i], claimAndGiveBack(b, tasks, fmt.Sprint(sizes[i]), turn, each))
		}
	}
	if b.ctx.Err() != nil {
		return
	}
	first := quantile(took[0], 0.5).Seconds()
	for i, n := range sizes {
		m := quantile(took[i], 0.5)
		ratio := m.Seconds() / first
		limit, ok := "", ""
		if i > 0 {
			limit, ok = "1.3 x", kept(ratio <= 1.3)
		}
		b.table.row("T7", fmt.Sprintf("a claim of %d tasks, with %d in the queue", each, n), fmt.Sprintf("%d µs", m.Microseconds()), "", fmt.Sprintf("%.2f x", ratio), limit, ok)
	}
}

// claimAndGiveBack returns how long a claim takes. The tasks are given back, so that
// the queue keeps its size.
func claimAndGiveBack(b *bench, tasks taskqueue.Store, queue string, turn, n int) time.Duration {
	start := time.Now()
	got, err := tasks.Claim(b.ctx, store.ClaimRequest{Queue: queue, Worker: "w", Nonce: fmt.Sprint(turn), Max: n, Lease: time.Minute})
	took := time.Since(start)
	if b.ctx.Err() != nil {
		return 0
	}
	must(err)
	if len(got.Tasks) != n {
		panic(fmt.Sprintf("%d tasks were claimed", len(got.Tasks)))
	}
	var outcomes []store.Outcome
	for _, t := range got.Tasks {
		outcomes = append(outcomes, store.Outcome{Ref: store.Ref{ID: t.ID, Token: t.Token}, Kind: store.Released})
	}
	_, err = tasks.Settle(b.ctx, queue, outcomes)
	must(err)
	return took
}
