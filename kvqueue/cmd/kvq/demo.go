package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
	"github.com/ambit-go/ambit/proc"
)

const (
	demoProducers = 3
	demoConsumers = 4
	demoItems     = 200 // of each producer
	demoTTL       = 2 * time.Second
	demoQueue     = "demo"
	// demoHolds is the item, of those that the first consumer takes, on which it stays until it is
	// killed.
	demoHolds = 20
	// demoLimit is when a demo that hangs is ended. One takes some seconds, and on a busy machine a minute.
	demoLimit = 5 * time.Minute
)

// A demo is one run of it.
type demo struct {
	*env
	path    string // of the file
	journal string // what the processes write down
	killed  atomic.Bool
}

func demoCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error { return e.demo(ctx) }
}

// demo has processes use one file. One consumer is killed while it
// works. The report is put together from what the processes have written down.
func (e *env) demo(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kvq")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d := &demo{env: e, path: filepath.Join(dir, "queue.db"), journal: filepath.Join(dir, "journal")}
	if err := os.WriteFile(d.journal, nil, 0o600); err != nil {
		return err
	}
	s, err := sqlitekv.Open(d.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	q, err := kvqueue.Open(ctx, s, demoQueue)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(context.WithoutCancel(ctx))) }()
	e.sayf("%d processes add %d items each, %d processes take them\n", demoProducers, demoItems, demoConsumers)
	begin := time.Now()
	if err := async.Scope(ctx, func(ctx context.Context) error { return d.run(ctx, q) }, async.Timeout(demoLimit)); err != nil {
		return fmt.Errorf("the demo did not come to its end: %w", err)
	}
	e.sayf("the queue is empty after %v\n\n", time.Since(begin).Round(10*time.Millisecond))
	return d.report()
}

// run starts the processes, kills a consumer, and returns when everything is done.
func (d *demo) run(ctx context.Context, q *kvqueue.Queue) error {
	consumers, end := context.WithCancelCause(ctx)
	defer end(errDemoDone)
	for n := range demoConsumers {
		async.Go(consumers, func(ctx context.Context) error { return d.consumer(ctx, n) }, async.Name(fmt.Sprint("consumer ", n)))
	}
	var producers []*async.Future[struct{}]
	for n := range demoProducers {
		producers = append(producers, async.Execute(ctx, func(ctx context.Context) (struct{}, error) {
			_, err := proc.Run(ctx, proc.Command{Args: d.command("demo-producer", n), Stderr: d.stderr, DieWithParent: true})
			return struct{}{}, err
		}, async.Name(fmt.Sprint("producer ", n))))
	}
	for _, p := range producers {
		if _, err := p.Wait(ctx); err != nil {
			return err
		}
	}
	for {
		n, err := q.Len(ctx)
		if err != nil {
			return err
		}
		if n.Ready+n.Claimed == 0 && d.killed.Load() {
			return nil
		}
		if err := async.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

var errDemoDone = errors.New("the queue is empty")

// consumer runs a consumer. The first gets kill -9 when it stays on an item.
func (d *demo) consumer(ctx context.Context, n int) error {
	var pid atomic.Int64
	command := proc.Command{
		Args:    d.command("demo-consumer", n),
		Started: func(id int) { pid.Store(int64(id)) },
		Stdout: writer(func([]byte) error { // it says one thing, that it stays
			p, err := os.FindProcess(int(pid.Load()))
			if err != nil {
				return err
			}
			d.killed.Store(true)
			d.sayf("consumer %d, process %d, works on an item, and gets kill -9\n", n, p.Pid)
			return p.Kill()
		}),
		Stderr: d.stderr, DieWithParent: true,
	}
	// In a scope of its own its end is ours to judge.
	err := async.Scope(ctx, func(ctx context.Context) error {
		_, err := proc.Run(ctx, command)
		return err
	})
	if n == 0 && d.killed.Load() || errors.Is(context.Cause(ctx), errDemoDone) {
		return nil
	}
	return err
}

// command is this program as a process of the demo.
func (d *demo) command(name string, n int) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return []string{self, name, d.path, d.journal, strconv.Itoa(n)}
}

type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) { return len(b), w(b) }
