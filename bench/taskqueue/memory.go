package main

import (
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ambit-go/ambit/taskqueue"
)

// measureMemory is T4.
func measureMemory(b *bench) {
	const n = 100_000
	q, stop := b.server.ambit(b.ctx)
	before := b.server.memory(b.ctx)
	fill(b, q, n, func(i int, t *taskqueue.Task) { t.Delay = time.Hour + time.Duration(i)*time.Millisecond })
	ours := (b.server.memory(b.ctx) - before) / n
	stop()

	c, stop := b.server.asynqClient(b.ctx)
	defer stop()
	before = b.server.memory(b.ctx)
	fillAsynq(b, c, n, func(i int) []asynq.Option {
		return []asynq.Option{asynq.ProcessIn(time.Hour + time.Duration(i)*time.Millisecond)}
	})
	peer := (b.server.memory(b.ctx) - before) / n
	b.table.row("T4", fmt.Sprintf("memory of a delayed task, %d of them", n), fmt.Sprintf("%.0f B", ours), fmt.Sprintf("%.0f B", peer), fmt.Sprintf("%.0f B", ours), "350 B", kept(ours <= 350))
}
