package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
)

// lease is that of the workers of T6.
const lease = 5 * time.Second

// children are what this program does when it is started by itself.
var children = map[string]func(args []string){
	"hang":       hang,
	"hang-asynq": hangAsynq,
	"add-sqlite": addToSQLite,
}

// hang claims a task, says so, and never ends it.
func hang(args []string) {
	ctx := context.Background()
	store, err := redisstore.New(ctx, redis.NewClient(&redis.Options{Network: "unix", Addr: args[0]}))
	must(err)
	q, err := taskqueue.New(store)
	must(err)
	must(q.Work(ctx, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
		fmt.Println("running")
		select {}
	}}, taskqueue.Lease(lease)))
}

func hangAsynq(args []string) {
	srv := asynq.NewServer(asynq.RedisClientOpt{Network: "unix", Addr: args[0]}, asynq.Config{LogLevel: asynq.FatalLevel})
	must(srv.Run(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		fmt.Println("running")
		select {}
	})))
}

// A child is this program, started as one of children.
type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func startChild(args ...string) *child {
	self, err := os.Executable()
	must(err)
	c := &child{cmd: exec.Command(self, args...)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	must(err)
	must(c.cmd.Start())
	c.out = bufio.NewScanner(out)
	return c
}

// kill kills the child with a signal that it cannot catch.
func (c *child) kill() {
	must(c.cmd.Process.Kill())
	_ = c.cmd.Wait()
}

// measureCrash is T6. Another worker of the same queue has nothing to do.
func measureCrash(b *bench) {
	var all []time.Duration
	for range b.rounds {
		all = append(all, crashAmbit(b))
	}
	if b.ctx.Err() != nil {
		return
	}
	row := measure.Row{ID: "T6", What: fmt.Sprintf("kill -9 until the rerun, lease %v", lease), Unit: "ms", Budget: measure.AtMost(millis(lease + 100*time.Millisecond))}
	for _, d := range all {
		row.Ours = append(row.Ours, millis(d))
	}
	if b.slow {
		row.Peer, row.Theirs = "asynq", measure.Sample{millis(crashAsynq(b))}
	}
	b.tell(row)
}

func crashAmbit(b *bench) time.Duration {
	q, stop := b.server.ambit(b.ctx)
	defer stop()
	enqueueAll(b, q, 1, nil)
	c := startChild("hang", b.server.socket)
	c.out.Scan()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	rerun := make(chan time.Time, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			rerun <- time.Now()
			return nil
		}}, taskqueue.Lease(lease))
	}()
	return killed(b, c, rerun, func() { cancel(); must(<-ended) })
}

func crashAsynq(b *bench) time.Duration {
	client, stop := b.server.asynqClient(b.ctx)
	defer stop()
	fillAsynq(b, client, 1, nil)
	c := startChild("hang-asynq", b.server.socket)
	c.out.Scan()
	rerun := make(chan time.Time, 1)
	return killed(b, c, rerun, b.server.asynqServer(0, func(*asynq.Task) { rerun <- time.Now() }))
}

// killed kills a child that runs a task and returns how long it takes until that runs
// again.
func killed(b *bench, c *child, rerun chan time.Time, stop func()) time.Duration {
	defer stop()
	select { // some extensions of the lease, and the start of the other worker
	case <-time.After(lease + lease/4):
	case <-b.ctx.Done():
	}
	start := time.Now()
	c.kill()
	select {
	case at := <-rerun:
		return at.Sub(start)
	case <-b.ctx.Done():
		return 0
	}
}
