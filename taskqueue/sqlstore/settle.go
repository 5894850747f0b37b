package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

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
		s.written(st.step)
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
}

// A settled is what is to be known of a task whose run has ended well, and has left nothing.
type settled struct {
	state, flags, token, settled, retention int64
	limited                                 string
}

var (
	sightsText  = "SELECT s.last, s.least, coalesce((SELECT settings FROM tq_queue WHERE queue = $1), '') FROM (" + sightText + ") AS s"
	lockRuns    = reading("tq_task", "id, state, flags, token, settled, retention, limited", "ORDER BY t.id FOR UPDATE OF t SKIP LOCKED")
	lockRunning = reading("tq_task", "id, state, flags, token, settled, retention, limited", "ORDER BY t.id FOR UPDATE OF t")
)

// lock is the query that locks the tasks of the outcomes.
func (st *settling) lock(into map[string]*settled) query {
	ids := make([]string, len(st.places))
	for n, i := range st.places {
		ids[n] = st.outcomes[i].ID
	}
	q := load(lockRuns, st.queue, ids, nil)
	if st.alone {
		q.bulk = lockRunning
	}
	q.each = func(scan scanner) error {
		var id string
		one := new(settled)
		err := scan(&id, &one.state, &one.flags, &one.token, &one.settled, &one.retention, &one.limited)
		into[id] = one
		return err
	}
	return q
}

// succeed takes over those outcomes that only say of a run that it has ended well, and returns the query of that,
// the places of all others, and the ids of those that are locked. It does what step.settle would do.
func (st *settling) succeed(locked map[string]*settled, parents map[string]bool) (q query, others []int, ids []string) {
	q = query{bulk: endRuns, args: []any{st.now.wall}}
	other := map[string]bool{} // its outcomes are taken in their order
	for _, i := range st.places {
		o := &st.outcomes[i]
		one := locked[o.ID]
		switch {
		case one == nil:
			others = append(others, i)
		case !other[o.ID] && o.Token == one.token && one.settled == one.token && one.state == int64(taskqueue.StateDone):
			st.results[i] = store.Settled
		case !other[o.ID] && o.Kind == store.Succeeded && o.Error == "" && len(o.Result) == 0 && o.Token == one.token && one.state == running &&
			flags(one.flags)&holds == 0 && one.limited == "" && !parents[o.ID]:
			forget := st.now.steady + max(time.Duration(one.retention), taskqueue.MinRetention).Microseconds()
			q.rows = append(q.rows, []any{st.queue, o.ID, forget})
			one.settled, one.state, st.results[i] = one.token, int64(taskqueue.StateDone), store.Settled
		case !other[o.ID] && one.state == int64(taskqueue.StateDone) && o.Token != one.token:
			st.results[i] = store.Stale
		default:
			other[o.ID] = true
			others, ids = append(others, i), append(ids, o.ID)
		}
	}
	st.count(taskqueue.CountDone, int64(len(q.rows)))
	st.room = len(q.rows) > 0
	return q, others, ids
}

func (st *settling) run() error {
	var seen sight
	records, parents, locked := map[string]*record{}, map[string]bool{}, map[string]*settled{}
	lock := st.lock(locked)
	var settings string
	err := st.t.run(query{clock: &st.now}, row(sightsText, []any{st.queue}, &seen.last, &seen.least, &settings), lock, parentsOf(lock.rows, parents))
	if err != nil {
		return err
	}
	succeeded, places, ids := st.succeed(locked, parents)
	if err := st.t.run(load(readTasks, st.queue, ids, records)); err != nil {
		return err
	}
	all := map[*record]bool{}
	for _, i := range places {
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
	if err := st.release(ended); err != nil {
		return err
	}
	return st.write(append(append(save(st.changed), succeeded), seen.step(st.step)...), settings)
}

// write ends the transaction with some queries, and tells others if something may start.
func (st *settling) write(queries []query, settings string) error {
	set, err := readSettings(settings)
	if err != nil {
		return err
	}
	st.sooner = st.sooner || len(st.freed) > 0 || st.room && set.Concurrency > 0
	return st.s.finish(st.step, "settle", true, append(queries, st.leave(st.freed))...)
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

// finish ends the transaction of a step with some queries, and tells others if something may start.
func (s *Store) finish(st *step, slot string, seen bool, queries ...query) error {
	if st.sooner = st.sooner || st.due.any(); st.sooner {
		queries = append(queries, s.tell(st)...)
	}
	return st.t.end(append(queries, st.note("p:"+s.client+"/"+slot, seen))...)
}

// written has this process know of tasks that wait by a step that is in the database.
func (s *Store) written(st *step) {
	s.fronts.lower(st.queue, st.due)
	if len(st.dead) > 0 {
		s.fronts.buried(st.queue)
	}
	if st.sooner {
		s.hints.wake(st.queue)
	}
}
