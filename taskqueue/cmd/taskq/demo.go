package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// What the demo does.
const (
	demoTasks   = 1000
	demoDelayed = 200 // of them: due up to 3 s from now
	demoFailing = 100 // of them: fail once or twice before they end well
	demoLease   = 2 * time.Second
)

// demoPayload is what a task of the demo is to do.
type demoPayload struct {
	Fail int `json:"fail"` // how many times
}

// An entry is a line of the ledger: the end of a run, by the process that ran it.
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
			e.url = "file:" + filepath.Join(dir, "tasks.db")
		}
		return e.demo(ctx, filepath.Join(dir, "ledger"))
	}
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
	q := root.In(fmt.Sprintf("demo-%d", os.Getpid()))
	due, err := e.demoEnqueue(ctx, q)
	if err != nil {
		return err
	}
	e.sayf("added %d tasks: %d are delayed up to 3 s, %d fail once or twice\n", demoTasks, demoDelayed, demoFailing)
	begin := time.Now()
	killed := 0
	err = async.Scope(ctx, func(ctx context.Context) error {
		for i := range 3 {
			cmd, err := demoStart(ctx, e.url, q.Name(), ledger)
			if err != nil {
				return err
			}
			async.Go(ctx, func(ctx context.Context) error { // by hand, because one of them is to be killed as kill -9 does
				defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })()
				_ = cmd.Wait() // how it ended is of no account: what it did is in the ledger
				return nil
			}, async.Daemon(), async.Name(fmt.Sprintf("worker %d", i+1)))
			if i == 0 {
				async.Go(ctx, func(ctx context.Context) error {
					if err := e.untilDone(ctx, q, demoTasks/4, false); err != nil {
						return err
					}
					killed = running(ctx, q)
					e.sayf("killed worker 1 (process %d, kill -9); %d tasks were running in all\n", cmd.Process.Pid, killed)
					return cmd.Process.Kill()
				})
			}
		}
		return e.untilDone(ctx, q, demoTasks, true)
	})
	if err != nil {
		return err
	}
	e.sayf("all tasks have ended after %v\n\n", time.Since(begin).Round(10*time.Millisecond))
	return e.demoReport(ctx, store, q, ledger, due)
}

func (e *env) sayf(format string, args ...any) { _, _ = fmt.Fprintf(e.stdout, format, args...) }

// demoEnqueue adds the tasks and returns their ids.
func (e *env) demoEnqueue(ctx context.Context, q *taskqueue.Queue) (ids []string, err error) {
	var tasks []taskqueue.Task
	for i := range demoTasks {
		p := demoPayload{}
		t := taskqueue.Task{Type: "demo", Retention: time.Hour, MaxFailures: 5}
		switch {
		case i%5 == 0:
			t.Delay = time.Duration(i) * 3 * time.Millisecond
		case i%10 == 1:
			p.Fail = 1 + i/10%2
		}
		if t.Payload, err = json.Marshal(p); err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	results, err := q.EnqueueAll(ctx, tasks)
	for _, r := range results {
		ids = append(ids, r.ID)
	}
	return ids, err
}

// demoStart starts a worker in a process of its own.
func demoStart(ctx context.Context, url, queue, ledger string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "demo-worker", url, queue, ledger)
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

// untilDone waits until n tasks are done.
func (e *env) untilDone(ctx context.Context, q *taskqueue.Queue, n int64, tell bool) error {
	last := time.Now()
	for {
		s, err := q.Stats(ctx)
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
		if tell && time.Since(last) > time.Second {
			last = time.Now()
			e.sayf("%d of %d done, %d run\n", done, n, s.States[taskqueue.StateRunning])
		}
		if err := async.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

func running(ctx context.Context, q *taskqueue.Queue) int {
	s, err := q.Stats(ctx)
	if err != nil {
		return 0
	}
	return int(s.States[taskqueue.StateRunning])
}

// demoWorker is the hidden command that runs tasks of the demo: store, queue, ledger.
func demoWorker(ctx context.Context, args []string) (err error) {
	store, err := taskqueue.Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	root, err := taskqueue.New(store)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(args[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	q := root.In(args[1])
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
	}}, taskqueue.Lease(demoLease), taskqueue.Concurrency(10), taskqueue.ShutdownGrace(2*time.Second))
}

// demoReport compares the ledger, the tasks and the store, and says what it finds.
func (e *env) demoReport(ctx context.Context, store taskqueue.Store, q *taskqueue.Queue, ledger string, ids []string) error {
	runs, err := readLedger(ledger)
	if err != nil {
		return err
	}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var crashes, failures, ran, repeated, early, late int
	for _, id := range ids {
		i, err := q.Get(ctx, id)
		if err != nil {
			fault("task %s: %v", id, err)
			continue
		}
		crashes, failures = crashes+i.Crashes, failures+i.Failures
		if i.State != taskqueue.StateDone {
			fault("task %s is %v", id, i.State)
		}
		well, token := 0, int64(0)
		for _, r := range runs[id] {
			ran++
			if !r.Failed {
				well++
			}
			if r.Token <= token {
				fault("task %s: token %d came after %d", id, r.Token, token)
			}
			token = r.Token
			if r.Started.Before(r.Due) {
				early++
			} else if r.Started.Sub(r.Due) > time.Second {
				late++
			}
		}
		if well == 0 {
			fault("task %s is done, and the ledger has no run of it that ended well", id)
		}
		repeated += max(well-1, 0)
		if well-1 > i.Crashes {
			fault("task %s ended well %d times, with %d crashes", id, well, i.Crashes)
		}
	}
	if early > 0 {
		fault("%d runs began before their time", early)
	}
	stored, err := audit(ctx, store)
	if err != nil {
		return err
	}
	faults = append(faults, stored...)
	e.sayf("the auditor's report\n  tasks            %6d\n  runs             %6d\n  failures         %6d\n  leases lost      %6d   (of the killed worker; their tasks ran again)\n"+
		"  done twice       %6d   (killed between the work and its settlement: at least once)\n  before its time  %6d\n  over 1 s late    %6d\n  faults           %6d\n",
		len(ids), ran, failures, crashes, repeated, early, late, len(faults))
	for _, f := range faults {
		e.sayf("    %s\n", f)
	}
	if len(faults) > 0 {
		return errors.New("the report has faults")
	}
	return nil
}

// readLedger reads the runs by task.
func readLedger(name string) (map[string][]entry, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	runs := map[string][]entry{}
	for lines := bufio.NewScanner(strings.NewReader(string(b))); lines.Scan(); {
		var r entry
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("the ledger: %w", err)
		}
		runs[r.ID] = append(runs[r.ID], r)
	}
	return runs, nil
}
