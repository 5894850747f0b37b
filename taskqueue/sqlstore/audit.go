package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// Audit is the method of taskqueue.Auditor.
func (s *Store) Audit(ctx context.Context, queue string) (faults []string, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		a := &audit{
			t: t, queue: queue, holders: map[string]string{}, payloads: map[string]bool{}, running: map[string]int{}, parked: map[string]int{},
			states: map[string]taskqueue.State{}, releases: map[string]bool{},
		}
		defer func() { faults = a.faults }()
		if err := a.look(s.postgres); err != nil {
			return err
		}
		if err := a.tasks(s.postgres); err != nil {
			return err
		}
		return a.limits()
	})
	return faults, err
}

// An audit compares what is stored with what the tasks say should be.
type audit struct {
	t         tx
	queue     string
	holders   map[string]string // by unique key
	payloads  map[string]bool   // by id: it is stored apart
	states    map[string]taskqueue.State
	edges     []edge
	releases  map[string]bool // by id: it has not told all its children yet
	lastToken int64
	running   map[string]int // leases of each group
	parked    map[string]int // tasks, by version and group
	faults    []string
}

func (a *audit) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

// look reads what stands beside the tasks.
func (a *audit) look(postgres bool) error {
	queries := []query{{text: "SELECT unique_key, id FROM tq_unique WHERE queue = $1", args: []any{a.queue}, each: func(scan func(...any) error) error {
		var key, id string
		err := scan(&key, &id)
		a.holders[key] = id
		return err
	}}}
	queries = append(queries, a.lookEdges()...)
	if postgres {
		queries = append(queries, row("SELECT last_value + 999 FROM tq_token", nil, &a.lastToken))
	} else {
		queries = append(queries, row("SELECT last_token FROM tq_queue WHERE queue = $1", []any{a.queue}, &a.lastToken),
			query{text: "SELECT id FROM tq_payload WHERE queue = $1", args: []any{a.queue}, each: func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				a.payloads[id] = true
				return err
			}})
	}
	return a.t.run(queries...)
}

// tasks looks at each task.
func (a *audit) tasks(postgres bool) error {
	err := a.t.run(query{text: "SELECT " + recordNames + " FROM tq_task WHERE queue = $1", args: []any{a.queue}, each: func(scan func(...any) error) error {
		r, err := scanRecord(scan)
		if err != nil {
			return err
		}
		a.task(r)
		if !postgres && !a.payloads[r.ID] {
			a.fault("task %s has lost its payload", r.ID)
		}
		delete(a.payloads, r.ID)
		return nil
	}})
	a.children()
	for id := range a.payloads {
		a.fault("the payload of task %s is left over", id)
	}
	for key, id := range a.holders {
		a.fault("the unique key %q of task %s is left over", key, id)
	}
	return err
}

func (a *audit) task(r *record) {
	a.states[r.ID] = r.State
	switch {
	case r.State == taskqueue.StateWaiting && (r.leaseEnd != 0 || r.ended != 0 || r.forget != 0):
		a.fault("task %s waits for others, and has begun or ended", r.ID)
	case r.State == taskqueue.StateWaiting: // see children
	case r.waits() && r.leaseEnd != 0:
		a.fault("task %s waits, and has a lease", r.ID)
	case r.State == taskqueue.StateRunning && (r.leaseEnd == 0 || r.lease == 0 || r.Worker == ""):
		a.fault("task %s runs without a lease", r.ID)
	case r.State.Ended() && (r.ended == 0 || r.leaseEnd != 0 || (r.forget == 0) != (r.State == taskqueue.StateDead)):
		a.fault("task %s has not ended as it should", r.ID)
	case r.State < taskqueue.StateScheduled || r.State > taskqueue.StateCancelled || r.State == taskqueue.StateReady:
		a.fault("task %s is stored as %v", r.ID, r.State)
	}
	if r.Token > a.lastToken {
		a.fault("task %s has token %d, the last that was given is %d", r.ID, r.Token, a.lastToken)
	}
	if running := r.State == taskqueue.StateRunning; r.parked != (r.limited != "") && !running {
		a.fault("task %s is %v, and has the limit %q", r.ID, r.State, r.limited)
	} else if running {
		a.running[r.limited]++
	} else if r.parked {
		a.parked[r.limited]++
	}
	if !r.has(holds) {
		return
	}
	if id := a.holders[r.UniqueKey]; id != r.ID {
		a.fault("task %s should hold the unique key %q, which task %q holds", r.ID, r.UniqueKey, id)
	} else {
		delete(a.holders, r.UniqueKey)
	}
	if r.State.Ended() {
		a.fault("task %s holds the unique key %q though it has ended", r.ID, r.UniqueKey)
	}
}

// limits looks for tasks that are parked though there is room, and that nothing brings back.
func (a *audit) limits() error {
	text, wakes := "", map[string]bool{}
	err := a.t.end(row("SELECT limits FROM tq_pattern WHERE queue = $1", []any{a.queue}, &text),
		query{text: "SELECT grp FROM tq_pace WHERE queue = $1 AND wakes = 1", args: []any{a.queue}, each: func(scan func(...any) error) error {
			var group string
			err := scan(&group)
			wakes[group] = true
			return err
		}})
	set, broken := limit.Parse(text)
	if err != nil || broken != nil || set == nil {
		return errors.Join(err, broken)
	}
	for limited, n := range a.parked {
		group, current := strings.CutPrefix(limited, set.Prefix())
		if !current || wakes[group] {
			continue // the next claims bring them back
		}
		if l := set.Group(group); l == nil || l.Concurrency == 0 || a.running[group] < l.Concurrency {
			a.fault("%d tasks under the limit %q are parked, and nothing brings them back", n, group)
		}
	}
	return nil
}
