package main

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
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
	var runs []func() float64
	for _, n := range sizes {
		turn := 0
		runs = append(runs, func() float64 {
			turn++
			return claimAndGiveBack(b, tasks, fmt.Sprint(n), turn, each).Seconds() * 1e6
		})
	}
	took := measure.Turns(turns, runs...)
	if b.ctx.Err() != nil {
		return
	}
	for i, n := range sizes[1:] {
		b.tell(measure.Row{
			ID: "T7", What: fmt.Sprintf("a claim of %d tasks, with %d in the queue", each, n), Peer: fmt.Sprintf("%d", sizes[0]), Unit: "µs",
			Ours: took[i+1], Theirs: took[0], Ratio: true, Budget: measure.AtMost(1.3),
		})
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
