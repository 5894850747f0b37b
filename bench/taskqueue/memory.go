package main

import (
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ambit-go/ambit/bench/internal/measure"
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
	b.tell(measure.Row{
		ID: "T4", What: fmt.Sprintf("memory of a delayed task, %d of them", n), Peer: "asynq", Unit: "B",
		Ours: measure.Sample{ours}, Theirs: measure.Sample{peer}, Budget: measure.AtMost(350),
	})
}
