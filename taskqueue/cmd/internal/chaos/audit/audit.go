// Package audit compares what the processes of a run of chaos have written down with
// what the store holds in the end, and with the rules of the stores: docs/taskqueue.md
// has them by their numbers.
package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
)

// A Span is some time, in nanoseconds as in the ledger, with both ends.
type Span struct{ From, To int64 }

func in(spans []Span, from, to int64) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return from <= s.To && s.From <= to })
}

// A Case is what is looked at when everything has come to rest.
type Case struct {
	Entries []ledger.Entry
	Tasks   map[string]taskqueue.Info
	Stats   taskqueue.Stats
	Stored  []string // what the store finds wrong with itself
	Left    []string // keys that were there when all tasks had been deleted
	// Losses are times in which a step may have been acknowledged and lost: what the
	// settings of the store say about the end of its machine.
	Losses []Span
}

// Load reads all tasks of a queue, and has the store check itself.
func (c *Case) Load(ctx context.Context, s taskqueue.Store, queue string) (err error) {
	c.Tasks = map[string]taskqueue.Info{}
	for state := taskqueue.StateScheduled; state <= taskqueue.StateWaiting; state++ {
		for r := (taskqueue.ListRequest{State: state, Max: 1000}); ; {
			page, err := s.List(ctx, queue, r)
			if err != nil {
				return err
			}
			for _, t := range page.Tasks {
				if before, twice := c.Tasks[t.ID]; twice {
					c.Stored = append(c.Stored, fmt.Sprintf("task %s is listed as %v and as %v", t.ID, before.State, t.State))
				}
				c.Tasks[t.ID] = t
			}
			if r.Cursor = page.Cursor; r.Cursor == "" {
				break
			}
		}
	}
	if c.Stats, err = s.Stats(ctx, queue); err != nil {
		return err
	}
	own, err := s.(taskqueue.Auditor).Audit(ctx, queue)
	c.Stored = append(c.Stored, own...)
	return err
}

// A Report is what was found.
type Report struct {
	Faults []string

	Acknowledged int // tasks
	Lost         int // of them, in a time in which that may happen
	Runs         int
	Repeated     int // runs that ended well, of tasks that had ended well before
	Crashes      int // leases that ran out
	LostRuns     int // handlers that were told that their lease was lost
	Stale        int // outcomes that came too late
}

// Check looks at everything.
func Check(c *Case) Report {
	a := &audit{Case: c, lives: map[string]*life{}, procs: map[string][]*ledger.Entry{}}
	a.sort()
	for _, step := range []func(){a.stored, a.sums, a.processes, a.tokens, a.keys, a.limits} {
		step()
	}
	for _, id := range a.ids {
		l := a.lives[id]
		a.acknowledged(l)
		a.parents(l)
		a.end(l)
		a.times(l)
		if !l.shaken {
			a.settlements(l)
			a.believers(l)
		}
	}
	slices.Sort(a.Faults)
	return a.Report
}

type audit struct {
	*Case
	Report
	ids   []string
	lives map[string]*life
	procs map[string][]*ledger.Entry
}

// A life is what is known of one task.
type life struct {
	id     string
	task   *taskqueue.Task // nil: nobody has tried to add it
	info   *taskqueue.Info // nil: the store does not know it
	of     map[ledger.Kind][]*ledger.Entry
	shaken bool // something of it happened when steps may have been lost
	fate   fate // by those that it was to run after
}

func (a *audit) fault(format string, args ...any) {
	a.Faults = append(a.Faults, fmt.Sprintf(format, args...))
}

// sort groups the entries by task and by process.
func (a *audit) sort() {
	slices.SortStableFunc(a.Entries, func(x, y ledger.Entry) int { return int(min(max(x.At-y.At, -1), 1)) })
	for i := range a.Entries {
		e := &a.Entries[i]
		a.procs[e.By] = append(a.procs[e.By], e)
		if e.ID == "" {
			continue
		}
		l := a.life(e.ID)
		l.of[e.Kind] = append(l.of[e.Kind], e)
		if e.Task != nil {
			l.task = e.Task
		}
		from := e.At
		if e.Began != 0 {
			from = e.Began
		}
		l.shaken = l.shaken || in(a.Losses, from, e.At)
	}
	for id := range a.Tasks {
		info := a.Tasks[id]
		a.life(id).info = &info
	}
	slices.Sort(a.ids)
}

func (a *audit) life(id string) *life {
	l := a.lives[id]
	if l == nil {
		l = &life{id: id, of: map[ledger.Kind][]*ledger.Entry{}}
		a.lives[id] = l
		a.ids = append(a.ids, id)
	}
	return l
}
