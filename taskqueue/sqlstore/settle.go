package sqlstore

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/taskqueue"
)

// Settle is a method of taskqueue.Store.
func (s *Store) Settle(ctx context.Context, queue string, outcomes []taskqueue.Outcome) (results []taskqueue.SettleResult, err error) {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckOutcomes(outcomes)); err != nil {
		return nil, err
	}
	var st *settling
	err = s.db.transact(ctx, writes, func(t tx) error {
		st = &settling{step: newStep(t, queue), s: s, outcomes: outcomes}
		return st.run()
	})
	if err != nil {
		return nil, err
	}
	s.written(st.step, st.waiting)
	return st.results, nil
}

// A settling is a Settle in its transaction.
type settling struct {
	*step
	s        *Store
	outcomes []taskqueue.Outcome
	results  []taskqueue.SettleResult
	changed  []*record // since the last save
	waiting  [taskqueue.Priorities]int64
}

func (st *settling) run() error {
	var seen sight
	ids := make([]string, len(st.outcomes))
	for i := range st.outcomes {
		ids[i] = st.outcomes[i].ID
	}
	records := map[string]*record{}
	var settings string
	err := st.t.run(query{clock: &st.now}, seen.query(st.queue), load(lockTasks, st.queue, ids, records),
		row("SELECT settings FROM tq_queue WHERE queue = $1", []any{st.queue}, &settings))
	if err != nil {
		return err
	}
	all := map[*record]bool{}
	for i := range st.outcomes {
		r := records[st.outcomes[i].ID]
		ended := r != nil && r.State.Ended()
		answer, changed := st.settle(r, &st.outcomes[i])
		if changed {
			if !all[r] {
				all[r], st.changed = true, append(st.changed, r)
			}
			if ended && r.waits() {
				if err := st.revive(r); err != nil {
					return err
				}
			}
			answer = r.isSettled()
		}
		st.results = append(st.results, answer)
	}
	st.waiting = firsts(all)
	queries := append(save(st.changed), seen.step(st.step)...)
	limited, err := limitedBy(settings)
	if err != nil {
		return err
	}
	queries = append(queries, st.leave(st.freed))
	if st.sooner = st.sooner || len(st.freed) > 0 || st.room && limited || anyWaits(st.waiting); st.sooner {
		queries = append(queries, st.s.tell(st.step)...)
	}
	return st.t.end(append(queries, st.note("p:"+st.s.client+"/settle", true))...)
}

// revive has a task wait again that a crash had ended, and with that freed its key. It waits
// only if it has the key again; else it stays a dead letter.
func (st *settling) revive(r *record) error {
	if r.UniqueKey == "" || r.Until == taskqueue.Start {
		return nil
	}
	// A task that this call has ended before may have freed it.
	if err := st.t.run(save(st.changed)...); err != nil {
		return err
	}
	other, err := st.hold(r)
	if other != "" {
		st.bury(r)
	}
	return err
}

// firsts are when the first of some records that wait is due, by class; -1: there is none.
func firsts(all map[*record]bool) (due [taskqueue.Priorities]int64) {
	for i := range due {
		due[i] = -1
	}
	for r := range all {
		if class := classOf(r.Priority); r.waits() && (due[class] < 0 || r.due < due[class]) {
			due[class] = r.due
		}
	}
	return due
}

func anyWaits(due [taskqueue.Priorities]int64) bool {
	for _, at := range due {
		if at >= 0 {
			return true
		}
	}
	return false
}

// written has this process know of tasks that wait by a step that is in the database.
func (s *Store) written(st *step, due [taskqueue.Priorities]int64) {
	s.fronts.lower(st.queue, due)
	if len(st.dead) > 0 {
		s.fronts.buried(st.queue)
	}
	if st.sooner {
		s.hints.wake(st.queue)
	}
}
