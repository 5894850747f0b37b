package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// A demoReport is what the auditor has found: in the ledger, which the workers have
// written, in what became of each task, and in the store.
type demoReport struct {
	d      *demo
	runs   map[string][]entry
	faults []string

	ended, failures, lost, others, repeated, early, late int
}

func (r *demoReport) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// report compares the ledger, the tasks and the store, and says what it finds.
func (d *demo) report(ctx context.Context) error {
	runs, err := readLedger(d.ledger)
	if err != nil {
		return err
	}
	r := &demoReport{d: d, runs: runs}
	for _, id := range d.ids {
		i, err := d.q.Get(ctx, id)
		if err != nil {
			r.fault("task %s: %v", id, err)
			continue
		}
		r.task(&i)
	}
	if r.early > 0 {
		r.fault("%d runs began before their time", r.early)
	}
	if err := r.stored(ctx); err != nil {
		return err
	}
	r.write()
	if len(r.faults) > 0 {
		return errors.New("the report has faults")
	}
	return nil
}

// task looks at one task and its runs.
func (r *demoReport) task(i *taskqueue.Info) {
	r.failures += i.Failures
	if r.d.killed[i.ID] {
		r.lost += i.Crashes
	} else {
		r.others += i.Crashes
	}
	if i.State != taskqueue.StateDone {
		r.fault("task %s is %v", i.ID, i.State)
	}
	if want := r.d.fails[i.ID]; i.Failures != want {
		r.fault("task %s has failed %d times, it was to fail %d times", i.ID, i.Failures, want)
	}
	well, token := 0, int64(0)
	for _, run := range r.runs[i.ID] {
		r.ended++
		if !run.Failed {
			well++
		}
		if run.Token <= token {
			r.fault("task %s: token %d came after %d", i.ID, run.Token, token)
		}
		token = run.Token
		r.time(i, &run)
	}
	if well == 0 {
		r.fault("task %s is done, and the ledger has no run of it that ended well", i.ID)
	}
	r.repeated += max(well-1, 0)
	if well-1 > i.Crashes {
		r.fault("task %s ended well %d times, and its lease was lost %d times", i.ID, well, i.Crashes)
	}
}

// time looks when a run began. The due time is the store's; the clock of a server on
// another machine cannot be compared with ours, so there the store is believed when the
// last run began.
func (r *demoReport) time(i *taskqueue.Info, run *entry) {
	started := run.Started
	if _, isFile := filePath(r.d.url); !isFile {
		if run.Token != i.Token {
			return
		}
		started = i.StartedAt
	}
	switch late := started.Sub(run.Due); {
	case late < 0:
		r.early++
	case late > time.Second:
		r.late++
	}
}

// stored looks at what the store has of the queue as a whole.
func (r *demoReport) stored(ctx context.Context) error {
	s, err := r.d.q.Stats(ctx)
	if err != nil {
		return err
	}
	for c, want := range map[taskqueue.Counter]int{
		taskqueue.CountAdded: len(r.d.ids), taskqueue.CountDone: len(r.d.ids), taskqueue.CountFailed: r.failures, taskqueue.CountCrashed: r.lost + r.others,
	} {
		if got := s.Counts[c]; got != int64(want) {
			r.fault("the store has counted %d tasks as %s, it should be %d", got, c, want)
		}
	}
	a, is := r.d.store.(taskqueue.Auditor)
	if !is {
		return errors.New("this store cannot check itself")
	}
	faults, err := a.Audit(ctx, r.d.q.Name()) // the other queues may be in use
	r.faults = append(r.faults, faults...)
	return err
}

func (r *demoReport) write() {
	r.d.sayf("the auditor's report\n")
	for _, line := range []struct {
		what string
		n    int
		note string
	}{
		{"tasks", len(r.d.ids), ""},
		{"runs that ended", r.ended, ""},
		{"of them failures", r.failures, "as they were told to"},
		{"leases lost", r.lost, "of the killed worker; their tasks ran again"},
		{"leases lost by others", r.others, "0 unless they were stopped, or this machine is very busy"},
		{"done twice", r.repeated, "the lease was lost between the work and its settlement: at least once"},
		{"before its time", r.early, ""},
		{"over 1 s late", r.late, "all places of the workers were taken"},
		{"faults", len(r.faults), ""},
	} {
		note := ""
		if line.note != "" {
			note = "   (" + line.note + ")"
		}
		r.d.sayf("  %-21s %6d%s\n", line.what, line.n, note)
	}
	for _, f := range r.faults {
		r.d.sayf("    %s\n", f)
	}
}

// readLedger reads the runs by task.
func readLedger(name string) (map[string][]entry, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	runs := map[string][]entry{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var r entry
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("the ledger: %w", err)
		}
		runs[r.ID] = append(runs[r.ID], r)
	}
	return runs, nil
}
