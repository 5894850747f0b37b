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

// look reads what stands beside the tasks.
func (a *auditing) look() error {
	q := []any{a.queue}
	queries := []query{
		eachRow("SELECT unique_key, id FROM tq_unique WHERE queue = $1", q, each2(func(k, id string) { a.Holders[k] = id })),
		eachRow("SELECT parent, child, on_failed FROM tq_edge WHERE queue = $1", q, each3(func(up, down, onFailed string) {
			a.Edges = append(a.Edges, audit.Edge{Parent: up, Child: down, OnFailed: taskqueue.OnFailed(onFailed)})
		})),
		eachRow("SELECT parent FROM tq_release WHERE queue = $1", q, each1(func(id string) { a.Releases[id] = true })),
		eachRow("SELECT grp FROM tq_pace WHERE queue = $1 AND wakes = 1", q, each1(func(grp string) { a.Wakes[grp] = true })),
	}
	if a.apart {
		queries = append(queries, row("SELECT last_token FROM tq_queue WHERE queue = $1", q, &a.LastToken),
			eachRow("SELECT id FROM tq_payload WHERE queue = $1", q, each1(func(id string) { a.payloads[id] = true })))
	} else {
		queries = append(queries, row("SELECT last_value + 999 FROM tq_token", nil, &a.LastToken))
	}
	return a.t.run(queries...)
}

// tasks looks at each task.
func (a *auditing) tasks() error {
	err := a.t.run(eachRow("SELECT "+recordNames+" FROM tq_task WHERE queue = $1", []any{a.queue}, eachRecord(a.task)))
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
