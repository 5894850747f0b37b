package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
)

// measureIdle is T5: a worker with nothing to do, while some tasks wait for their time.
func measureIdle(b *bench) {
	const long = 10 * time.Second
	q, stop := b.server.ambit(b.ctx)
	fill(b, q, 100, func(_ int, t *taskqueue.Task) { t.Delay = time.Hour })
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error)
	go func() { ended <- q.Work(ctx, taskqueue.Handlers{"t": nothing}) }()
	ours := b.server.commands(b.ctx, long)
	cancel()
	must(<-ended)
	stop()

	c, stop := b.server.asynqClient(b.ctx)
	defer stop()
	fillAsynq(b, c, 100, func(int) []asynq.Option { return []asynq.Option{asynq.ProcessIn(time.Hour)} })
	defer b.server.asynqServer(0, func(*asynq.Task) {})()
	peer := b.server.commands(b.ctx, long)
	b.tell(measure.Row{
		ID: "T5", What: "commands of an idle worker, one queue", Peer: "asynq", Unit: "/s",
		Ours: measure.Sample{ours}, Theirs: measure.Sample{peer}, Budget: measure.AtMost(1),
	})
}

func nothing(context.Context, *taskqueue.Claim) error { return nil }

// commands returns how many commands a second the server gets. It listens with
// MONITOR, which tells those that scripts have called from those that clients have
// sent; the statistics of INFO count both.
func (s *server) commands(ctx context.Context, long time.Duration) float64 {
	select { // what belongs to the start
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return 0
	}
	conn, err := net.Dial("unix", s.socket)
	must(err)
	defer func() { must(conn.Close()) }()
	_, err = fmt.Fprint(conn, "MONITOR\r\n")
	must(err)
	must(conn.SetReadDeadline(time.Now().Add(long)))
	n := 0
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "+") && line != "+OK" && !strings.Contains(line, " lua] ") {
			n++
		}
	}
	return float64(n) / long.Seconds()
}
