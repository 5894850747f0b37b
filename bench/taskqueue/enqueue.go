package main

import (
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
)

const (
	callers = 32 // goroutines that enqueue
	batch   = 50 // tasks a call of EnqueueAll
)

// measureEnqueue is T1.
func measureEnqueue(b *bench) {
	const n = 40_000
	one := func(n int) time.Duration {
		q, stop := b.server.ambit(b.ctx)
		defer stop()
		return together(callers, n, func(int) {
			_, err := q.Enqueue(b.ctx, taskqueue.Task{Type: "t", Payload: payload})
			must(err)
		})
	}
	many := func(n int) time.Duration {
		q, stop := b.server.ambit(b.ctx)
		defer stop()
		return together(callers, n/batch, func(int) { enqueueAll(b, q, batch, nil) })
	}
	peer := func(n int) time.Duration {
		c, stop := b.server.asynqClient(b.ctx)
		defer stop()
		return together(callers, n, func(int) {
			_, err := c.EnqueueContext(b.ctx, asynq.NewTask("t", payload))
			must(err)
		})
	}
	row := rates(b.rounds, n, one, peer)
	row.ID, row.What, row.Budget = "T1", fmt.Sprintf("enqueue, one a call, %d goroutines", callers), measure.AtLeast(1.1)
	b.tell(row)
	row = rates(b.rounds, n, many, peer)
	row.ID, row.What, row.Budget = "T1", fmt.Sprintf("enqueue, %d a call, %d goroutines; asynq one a call", batch, callers), measure.AtLeast(4)
	b.tell(row)
}

// enqueueAll adds n tasks in one call; change, unless it is nil, sets what is different
// with each.
func enqueueAll(b *bench, q *taskqueue.Queue, n int, change func(i int, t *taskqueue.Task)) {
	tasks := make([]taskqueue.Task, n)
	for i := range tasks {
		tasks[i] = taskqueue.Task{Type: "t", Payload: payload}
		if change != nil {
			change(i, &tasks[i])
		}
	}
	results, err := q.EnqueueAll(b.ctx, tasks)
	must(err)
	for _, r := range results {
		if r.Verdict != taskqueue.Added {
			panic("a task was not added")
		}
	}
}

// fill adds n tasks in calls of 500.
func fill(b *bench, q *taskqueue.Queue, n int, change func(i int, t *taskqueue.Task)) {
	const step = 500
	for from := 0; from < n; from += step {
		enqueueAll(b, q, min(step, n-from), func(i int, t *taskqueue.Task) {
			if change != nil {
				change(from+i, t)
			}
		})
	}
}

// fillAsynq does the same with asynq.
func fillAsynq(b *bench, c *asynq.Client, n int, opts func(i int) []asynq.Option) {
	together(callers, n, func(i int) {
		var o []asynq.Option
		if opts != nil {
			o = opts(i)
		}
		_, err := c.EnqueueContext(b.ctx, asynq.NewTask("t", payload), o...)
		must(err)
	})
}
