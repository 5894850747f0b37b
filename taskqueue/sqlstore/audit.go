package sqlstore

import (
	"context"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/audit"
)

// Audit is the method of taskqueue.Auditor.
func (s *Store) Audit(ctx context.Context, queue string) (faults []string, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		a := &auditing{Audit: audit.New(), t: t, queue: queue, apart: !s.postgres, payloads: map[string]bool{}}
		defer func() { faults = a.Faults }()
		limits := ""
		if err := a.look(); err != nil {
			return err
		}
		if err := a.tasks(); err != nil {
			return err
		}
		if err := a.t.end(row("SELECT limits FROM tq_pattern WHERE queue = $1", []any{queue}, &limits)); err != nil {
			return err
		}
		return a.End(limits)
	})
	return faults, err
}

// An auditing is an Audit of a database.
type auditing struct {
	*audit.Audit
	t        tx
	queue    string
	apart    bool            // payloads stand apart
	payloads map[string]bool // by id
}

// read is the query of what stands in the queue beside the tasks: f is given the texts of each row.
func (a *auditing) read(text string, columns int, f func(is []string)) query {
	return query{text: text, args: []any{a.queue}, each: func(scan func(...any) error) error {
		is, into := make([]string, columns), make([]any, columns)
		for i := range is {
			into[i] = &is[i]
		}
		err := scan(into...)
		f(is)
		return err
	}}
}

// look reads what stands beside the tasks.
func (a *auditing) look() error {
	queries := []query{
		a.read("SELECT unique_key, id FROM tq_unique WHERE queue = $1", 2, func(is []string) { a.Holders[is[0]] = is[1] }),
		a.read("SELECT parent, child, on_failed FROM tq_edge WHERE queue = $1", 3, func(is []string) {
			a.Edges = append(a.Edges, audit.Edge{Parent: is[0], Child: is[1], OnFailed: taskqueue.OnFailed(is[2])})
		}),
		a.read("SELECT parent FROM tq_release WHERE queue = $1", 1, func(is []string) { a.Releases[is[0]] = true }),
		a.read("SELECT grp FROM tq_pace WHERE queue = $1 AND wakes = 1", 1, func(is []string) { a.Wakes[is[0]] = true }),
	}
	if a.apart {
		queries = append(queries, row("SELECT last_token FROM tq_queue WHERE queue = $1", []any{a.queue}, &a.LastToken),
			a.read("SELECT id FROM tq_payload WHERE queue = $1", 1, func(is []string) { a.payloads[is[0]] = true }))
	} else {
		queries = append(queries, row("SELECT last_value + 999 FROM tq_token", nil, &a.LastToken))
	}
	return a.t.run(queries...)
}

// tasks looks at each task.
func (a *auditing) tasks() error {
	err := a.t.run(query{text: "SELECT " + recordNames + " FROM tq_task WHERE queue = $1", args: []any{a.queue}, each: func(scan func(...any) error) error {
		r, err := scanRecord(scan)
		if err != nil {
			return err
		}
		a.task(r)
		return nil
	}})
	for id := range a.payloads {
		a.Fault("the payload of task %s is left over", id)
	}
	return err
}

func (a *auditing) task(r *record) {
	switch {
	case r.State == taskqueue.StateWaiting && (r.leaseEnd != 0 || r.ended != 0 || r.forget != 0):
		a.Fault("task %s waits for others, and has begun or ended", r.ID)
	case r.State == taskqueue.StateWaiting:
	case r.waits() && r.leaseEnd != 0:
		a.Fault("task %s waits, and has a lease", r.ID)
	case r.State == taskqueue.StateRunning && (r.leaseEnd == 0 || r.lease == 0 || r.Worker == ""):
		a.Fault("task %s runs without a lease", r.ID)
	case r.State.Ended() && (r.ended == 0 || r.leaseEnd != 0 || (r.forget == 0) != (r.State == taskqueue.StateDead)):
		a.Fault("task %s has not ended as it should", r.ID)
	case r.State < taskqueue.StateScheduled || r.State > taskqueue.StateCancelled || r.State == taskqueue.StateReady:
		a.Fault("task %s is stored as %v", r.ID, r.State)
	}
	if r.State != taskqueue.StateRunning && r.parked != (r.limited != "") {
		a.Fault("task %s is %v, and has the limit %q", r.ID, r.State, r.limited)
	}
	if r.parked {
		a.Parked[r.limited]++
	}
	if held := r.UniqueKey != "" && a.Holders[r.UniqueKey] == r.ID; held != r.has(holds) {
		a.Fault("task %s is noted to hold its unique key: %v, and holds it: %v", r.ID, r.has(holds), held)
	}
	a.Task(&r.Info, r.limited)
	if a.apart && !a.payloads[r.ID] {
		a.Fault("task %s has lost its payload", r.ID)
	}
	delete(a.payloads, r.ID)
}
