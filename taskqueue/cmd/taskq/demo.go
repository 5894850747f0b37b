package main

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/audit"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
)

// The parts of the demo.
const (
	demoTasks   = 1000
	demoDelayed = 200 // of them: due up to 3 s from now
	demoFailing = 100 // of them: fail twice before they end well
	demoLease   = 2 * time.Second
	demoWorkers = 3
	// demoLimit is how long it takes at most: longer than that something is wrong.
	demoLimit = 5 * time.Minute
)

func demoCommand(f *flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		dir, err := os.MkdirTemp("", "taskq")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		given := false
		f.Visit(func(fl *flag.Flag) { given = given || fl.Name == "store" })
		if !given {
			e.url = "sqlite:" + filepath.Join(dir, "tasks.db")
		}
		return e.demo(ctx, dir)
	}
}

// A demo is one run of it.
type demo struct {
	*env
	store taskqueue.Store
	q     *taskqueue.Queue
	dir   string // of the journals

	left  atomic.Int64 // workers that have not ended
	kills atomic.Bool  // worker 1 is to be killed now
}

// demo adds tasks, starts three workers, kills one, waits for the end, and reports.
func (e *env) demo(ctx context.Context, dir string) (err error) {
	store, err := taskqueue.Open(ctx, e.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	root, err := taskqueue.New(store)
	if err != nil {
		return err
	}
	d := &demo{env: e, store: store, dir: dir}
	// A name that no other demo has, on whatever machine.
	d.q = root.In("demo-" + cryptorand.Text())
	defer func() { err = errors.Join(err, purgeAll(context.WithoutCancel(ctx), d.q)) }() // others may use the store
	if err := d.enqueue(ctx); err != nil {
		return err
	}
	e.sayf("added %d tasks: %d are delayed up to 3 s, %d fail twice\n", demoTasks, demoDelayed, demoFailing)
	begin := time.Now()
	if err := async.Scope(ctx, d.run, async.Timeout(demoLimit), async.Name("demo")); err != nil {
		return fmt.Errorf("the demo did not come to its end: %w", err)
	}
	e.sayf("all tasks have ended after %v\n\n", time.Since(begin).Round(10*time.Millisecond))
	return d.report(ctx)
}

func (e *env) sayf(format string, args ...any) { _, _ = fmt.Fprintf(e.stdout, format, args...) }

// run starts the workers, kills one, and returns when all tasks are done.
func (d *demo) run(ctx context.Context) error {
	d.left.Store(demoWorkers)
	for i := 1; i <= demoWorkers; i++ {
		cmd, err := d.start(ctx, i)
		if err != nil {
			return err
		}
		async.Go(ctx, func(ctx context.Context) error { // by hand, because one of them is to be killed as kill -9 does
			defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })()
			err := cmd.Wait() // what it did is in its journal
			if d.left.Add(-1); ctx.Err() == nil && (i > 1 || !d.kills.Load()) {
				d.sayf("worker %d has ended: %v\n", i, cmp.Or(err, errors.New("by itself")))
			}
			return nil
		}, async.Daemon(), async.Name(fmt.Sprintf("worker %d", i)))
		if i == 1 {
			async.Go(ctx, func(ctx context.Context) error {
				if err := d.untilDone(ctx, demoTasks/4, false); err != nil {
					return err
				}
				d.kills.Store(true)
				if err := cmd.Process.Kill(); err != nil {
					return fmt.Errorf("worker 1 was to be killed: %w", err)
				}
				return d.noteKilled(ctx, cmd.Process.Pid)
			})
		}
	}
	return d.untilDone(ctx, demoTasks, true)
}

// noteKilled tells what worker 1 was running. It is dead: nobody else gets that before
// its leases have run out.
func (d *demo) noteKilled(ctx context.Context, pid int) error {
	had := 0
	for r := (taskqueue.ListRequest{State: taskqueue.StateRunning, Max: taskqueue.MaxBatch}); ; {
		page, err := d.q.List(ctx, r)
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			if t.Worker == demoName(1) {
				had++
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			d.sayf("killed worker 1 (process %d, kill -9); it had %d tasks\n", pid, had)
			return nil
		}
	}
}

// enqueue adds the tasks, and writes down that it did.
func (d *demo) enqueue(ctx context.Context) error {
	journal, err := ledger.Create(d.dir, "producer")
	if err != nil {
		return err
	}
	var tasks []taskqueue.Task
	var tried, added []ledger.Entry
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range demoTasks {
		do := plan.OK
		if i%10 == 1 {
			do = plan.Retry
		}
		t := do.Task(rng, fmt.Sprintf("task-%04d", i))
		if i%5 == 0 {
			t.Delay = time.Duration(i) * 3 * time.Millisecond
		}
		tasks, tried = append(tasks, t), append(tried, ledger.Entry{Kind: ledger.Trying, ID: t.ID, Task: &t})
	}
	began := ledger.Now()
	err = journal.Write(tried...)
	if err == nil {
		var results []taskqueue.Result
		results, err = d.q.EnqueueAll(ctx, tasks)
		for _, r := range results {
			added = append(added, ledger.Entry{Kind: ledger.Added, Began: began, ID: r.ID, Verdict: r.Verdict})
		}
	}
	if err == nil {
		err = journal.Write(added...)
	}
	return errors.Join(err, journal.Close())
}

func demoName(worker int) string { return fmt.Sprintf("worker %d", worker) }

// start starts a worker in a process of its own.
func (d *demo) start(ctx context.Context, worker int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "demo-worker", d.q.Name(), d.dir, demoName(worker))
	cmd.Env = append(os.Environ(), demoStore+"="+d.url) // not an argument, which others see: there may be a password in it
	cmd.Stderr = d.stderr
	return cmd, cmd.Start()
}

// untilDone waits until n tasks are done.
func (d *demo) untilDone(ctx context.Context, n int64, tell bool) error {
	last := time.Now()
	for {
		s, err := d.q.Stats(ctx)
		if err != nil {
			return err
		}
		if dead := s.States[taskqueue.StateDead]; dead > 0 {
			return fmt.Errorf("%d tasks are dead letters; there should be none", dead)
		}
		done := s.States[taskqueue.StateDone]
		if done >= n {
			return nil
		}
		if d.left.Load() == 0 {
			return fmt.Errorf("all workers have ended, and %d of %d tasks are done", done, n)
		}
		if tell && time.Since(last) > time.Second {
			last = time.Now()
			d.sayf("%d of %d done, %d run\n", done, n, s.States[taskqueue.StateRunning])
		}
		if err := async.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// demoStore tells a worker of the demo its store.
const demoStore = "TASKQ_DEMO_STORE"

// demoWorker is the hidden command that runs tasks of the demo: queue, folder of the journals, name.
func demoWorker(ctx context.Context, args []string) (err error) {
	store, err := taskqueue.Open(ctx, os.Getenv(demoStore))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	journal, err := ledger.Create(args[1], args[2])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	root, err := taskqueue.New(&ledger.Recorder{Store: store, Journal: journal})
	if err != nil {
		return err
	}
	const places = 10
	handlers := (&plan.Player{Journal: journal, Places: places}).Handlers()
	return root.In(args[0]).Work(ctx, handlers, taskqueue.Lease(demoLease), taskqueue.Concurrency(places), taskqueue.ShutdownGrace(2*time.Second), taskqueue.WorkerName(args[2]))
}

// report compares what the processes have written down with what is stored, as the runs of chaos do, and says
// what it finds.
func (d *demo) report(ctx context.Context) (err error) {
	c := new(audit.Case)
	if c.Entries, err = ledger.Read(d.dir); err != nil {
		return err
	}
	if err := c.Load(ctx, d.store, d.q.Name()); err != nil {
		return err
	}
	r := audit.Check(c)
	d.sayf("the auditor's report\n")
	for _, line := range []struct {
		what string
		n    int
		note string
	}{
		{"tasks", r.Acknowledged, ""},
		{"runs", r.Runs, ""},
		{"leases that ran out", r.Crashes, "   (of the killed worker, and of those that this machine has kept waiting; their tasks ran again)"},
		{"ended well twice", r.Repeated, "   (the lease ran out between the work and its settlement: at least once)"},
		{"faults", len(r.Faults), ""},
	} {
		d.sayf("  %-21s %6d%s\n", line.what, line.n, line.note)
	}
	for _, f := range r.Faults {
		d.sayf("    %s\n", f)
	}
	if len(r.Faults) > 0 {
		return errors.New("the report has faults")
	}
	return nil
}
