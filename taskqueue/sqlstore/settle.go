package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// Settle is a method of taskqueue.Store.
func (s *Store) Settle(ctx context.Context, queue string, outcomes []store.Outcome) (results []store.SettleResult, err error) {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckOutcomes(outcomes)); err != nil {
		return nil, err
	}
	results = make([]store.SettleResult, len(outcomes))
	places := make([]int, len(outcomes))
	for i := range places {
		places[i] = i
	}
	for alone := false; ; alone = true {
		var st *settling
		err = s.db.transact(ctx, writes, func(t tx) error {
			st = &settling{step: newStep(t, queue), s: s, outcomes: outcomes, results: results, places: places, alone: alone}
			return st.run()
		})
		if err != nil {
			return nil, err
		}
		s.written(st.step, st.waiting)
		places = slices.DeleteFunc(places, func(i int) bool { return results[i] != store.Gone })
		if alone || !s.postgres || len(places) == 0 {
			return results, nil
		}
	}
}

// A settling is a Settle in its transaction.
type settling struct {
	*step
	s        *Store
	outcomes []store.Outcome
	results  []store.SettleResult
	places   []int // of the outcomes that it is about
	// alone: it waits for what others have locked, as whoever adds a child of a task has. One before it
	// has not waited, and has settled all others.
	alone   bool
	changed []*record // since the last save
	waiting [taskqueue.Priorities]int64
}

func (st *settling) run() error {
	var seen sight
	ids := make([]string, len(st.places))
	for n, i := range st.places {
		ids[n] = st.outcomes[i].ID
	}
	records, parents := map[string]*record{}, map[string]bool{}
	lock := load(lockTasks, st.queue, ids, records)
	if !st.alone {
		lock.bulk = lockChildren
	}
	var settings string
	err := st.t.run(query{clock: &st.now}, seen.query(st.queue), lock, parentsOf(lock.rows, parents),
		row("SELECT settings FROM tq_queue WHERE queue = $1", []any{st.queue}, &settings))
	if err != nil {
		return err
	}
	all := map[*record]bool{}
	for _, i := range st.places {
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
		st.results[i] = answer
	}
	ended := st.takeEnds()
	maps.DeleteFunc(ended, func(id string, _ taskqueue.State) bool { return !parents[id] }) // most have no children
	if _, err := st.releaseInto(all, ended); err != nil {
		return err
	}
	st.waiting = firsts(all)
	queries := append(save(st.changed), seen.step(st.step)...)
	set, err := readSettings(settings)
	if err != nil {
		return err
	}
	queries = append(queries, st.leave(st.freed))
	if st.sooner = st.sooner || len(st.freed) > 0 || st.room && set.Concurrency > 0 || anyWaits(st.waiting); st.sooner {
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
