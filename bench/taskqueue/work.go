package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
)

// measureWork is T2. The time of ours ends when Work has returned, so when all is
// settled; that of asynq when the last handler has begun.
func measureWork(b *bench) {
	const n, concurrency = 20_000, 100
	ours := func(n int) time.Duration {
		q, stop := b.server.ambit(b.ctx)
		defer stop()
		fill(b, q, n, nil)
		return workOff(b, q, n, concurrency)
	}
	peer := func(n int) time.Duration {
		c, stop := b.server.asynqClient(b.ctx)
		defer stop()
		fillAsynq(b, c, n, nil)
		var done atomic.Int64
		all := make(chan time.Time, 1)
		start := time.Now()
		defer b.server.asynqServer(concurrency, func(*asynq.Task) {
			if done.Add(1) == int64(n) {
				all <- time.Now()
			}
		})()
		return (<-all).Sub(start)
	}
	row := rates(b.rounds, n, ours, peer)
	row.ID, row.What, row.Budget = "T2", fmt.Sprintf("claim and settle, empty handler, concurrency %d", concurrency), measure.AtLeast(4)
	b.tell(row)
}

// workOff runs n tasks of q and returns how long it took until all were settled.
func workOff(b *bench, q *taskqueue.Queue, n, concurrency int) time.Duration {
	c := newCountdown(b, n)
	defer c.stop()
	start := time.Now()
	must(q.Work(c.ctx, taskqueue.Handlers{"t": c.handle}, taskqueue.Concurrency(concurrency)))
	took := time.Since(start)
	c.check(q)
	return took
}

// A countdown ends its ctx when so many tasks have run.
type countdown struct {
	b    *bench
	n    int64
	done atomic.Int64
	ctx  context.Context
	stop context.CancelFunc
}

func newCountdown(b *bench, n int) *countdown {
	c := &countdown{b: b, n: int64(n)}
	c.ctx, c.stop = context.WithCancel(b.ctx)
	return c
}

func (c *countdown) handle(context.Context, *taskqueue.Claim) error {
	if c.done.Add(1) == c.n {
		c.stop()
	}
	return nil
}

// check panics unless all tasks of q have been settled as done.
func (c *countdown) check(q *taskqueue.Queue) {
	stats, err := q.Stats(c.b.ctx)
	must(err)
	if got := stats.Counts[taskqueue.CountDone]; got != c.n && c.b.ctx.Err() == nil {
		panic(fmt.Sprintf("%d of %d tasks are done", got, c.n))
	}
}
