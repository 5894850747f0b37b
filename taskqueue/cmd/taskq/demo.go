package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// The parts of the demo.
const (
	demoTasks   = 1000
	demoDelayed = 200 // of them: due up to 3 s from now
	demoFailing = 100 // of them: fail once or twice before they end well
	demoLease   = 2 * time.Second
	demoWorkers = 3
	// demoLimit is how long it takes at most: longer than that something is wrong.
	demoLimit = 25 * time.Second
)

// demoPayload is what a task of the demo is to do.
type demoPayload struct {
	Fail int `json:"fail"` // how many times
}

// An entry is a line of the ledger: the end of a run, by the process that ran it. Times
// are those of its clock.
type entry struct {
	ID      string    `json:"id"`
	Token   int64     `json:"token"`
	Due     time.Time `json:"due"`
	Started time.Time `json:"started"`
	Failed  bool      `json:"failed,omitempty"`
}

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
		return e.demo(ctx, filepath.Join(dir, "ledger"))
	}
}

// A demo is one run of it.
type demo struct {
	*env
	store  taskqueue.Store
	q      *taskqueue.Queue
	ledger string
	ids    []string
	fails  map[string]int // how often a task is to fail

	left   atomic.Int64    // workers that have not ended
	kills  atomic.Bool     // worker 1 is to be killed now
	killed map[string]bool // what worker 1 was running when it was killed
}

// demo adds tasks, starts three workers, kills one, waits for the end, and reports.
func (e *env) demo(ctx context.Context, ledger string) (err error) {
	store, err := taskqueue.Open(ctx, e.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	root, err := taskqueue.New(store)
	if err != nil {
		return err
	}
	d := &demo{env: e, store: store, ledger: ledger, fails: map[string]int{}, killed: map[string]bool{}}
	// A name that no other demo has, on whatever machine.
	d.q = root.In("demo-" + rand.Text())
	defer func() { err = errors.Join(err, d.clean(context.WithoutCancel(ctx))) }()
	if err := d.enqueue(ctx); err != nil {
		return err
	}
	e.sayf("added %d tasks: %d are delayed up to 3 s, %d fail once or twice\n", demoTasks, demoDelayed, demoFailing)
	begin := time.Now()
	if err := async.Scope(ctx, d.run, async.Timeout(demoLimit), async.Name("demo")); err != nil {
		return fmt.Errorf("the demo did not come to its end: %w", err)
	}
	e.sayf("all tasks have ended after %v\n\n", time.Since(begin).Round(10*time.Millisecond))
	return d.report(ctx)
}

// clean deletes the tasks, so that nothing is left of them in a store that others use.
func (d *demo) clean(ctx context.Context) error {
	for s := taskqueue.StateScheduled; s <= taskqueue.StateWaiting; s++ {
		if s == taskqueue.StateRunning {
			continue
		}
		if _, err := d.q.Purge(ctx, s); err != nil {
			return err
		}
	}
	return nil
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
			err := cmd.Wait() // what it did is in the ledger
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

// noteKilled notes what worker 1 was running. It is dead: nobody else gets that before
// its leases have run out.
func (d *demo) noteKilled(ctx context.Context, pid int) error {
	for r := (taskqueue.ListRequest{State: taskqueue.StateRunning, Max: taskqueue.MaxBatch}); ; {
		page, err := d.q.List(ctx, r)
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			if t.Worker == demoName(1) {
				d.killed[t.ID] = true
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			d.sayf("killed worker 1 (process %d, kill -9); it had %d tasks\n", pid, len(d.killed))
			return nil
		}
	}
}

// enqueue adds the tasks.
func (d *demo) enqueue(ctx context.Context) error {
	var tasks []taskqueue.Task
	var fails []int
	for i := range demoTasks {
		p := demoPayload{}
		t := taskqueue.Task{Type: "demo", Retention: time.Hour, MaxFailures: 5}
		switch {
		case i%5 == 0:
			t.Delay = time.Duration(i) * 3 * time.Millisecond
		case i%10 == 1:
			p.Fail = 1 + i/10%2
		}
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		t.Payload = b
		tasks, fails = append(tasks, t), append(fails, p.Fail)
	}
	results, err := d.q.EnqueueAll(ctx, tasks)
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Verdict != taskqueue.Added {
			return fmt.Errorf("task %s was not added: %v", r.ID, r.Verdict)
		}
		d.ids = append(d.ids, r.ID)
		d.fails[r.ID] = fails[i]
	}
	return nil
}

func demoName(worker int) string { return fmt.Sprintf("worker %d", worker) }

// start starts a worker in a process of its own.
func (d *demo) start(ctx context.Context, worker int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "demo-worker", d.q.Name(), d.ledger, demoName(worker))
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

// demoWorker is the hidden command that runs tasks of the demo: queue, ledger, name.
func demoWorker(ctx context.Context, args []string) (err error) {
	store, err := taskqueue.Open(ctx, os.Getenv(demoStore))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	root, err := taskqueue.New(store)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	q := root.In(args[0])
	return q.Work(ctx, taskqueue.Handlers{"demo": func(ctx context.Context, c *taskqueue.Claim) error {
		var p demoPayload
		if err := json.Unmarshal(c.Payload, &p); err != nil {
			return taskqueue.Dead(err)
		}
		line := entry{ID: c.ID, Token: c.Token, Started: time.Now(), Due: c.DueAt, Failed: c.Failures < p.Fail}
		if err := async.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		b, err := json.Marshal(line)
		if err == nil {
			_, err = ledger.Write(append(b, '\n')) // one write: lines of several processes do not mix
		}
		if err == nil && line.Failed {
			return taskqueue.RetryAfter(200*time.Millisecond, errors.New("as it was told to"))
		}
		return err
	}}, taskqueue.Lease(demoLease), taskqueue.Concurrency(10), taskqueue.ShutdownGrace(2*time.Second), taskqueue.WorkerName(args[2]))
}
