package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/taskqueue"
)

// Tick is a method of taskqueue.Store.
func (s *Store) Tick(ctx context.Context, k taskqueue.Tick) (did bool, err error) {
	if err := errors.Join(taskqueue.CheckName("queue", k.Queue), taskqueue.CheckTick(k)); err != nil {
		return false, err
	}
	var st *step
	err = s.db.transact(ctx, writes, func(t tx) error {
		st, did = newStep(t, k.Queue), false
		tasks := []*taskqueue.Task{}
		if !k.At.IsZero() {
			tasks = append(tasks, &k.Task)
		}
		a := s.adding(st, tasks)
		inForce, err := noteTick(st, &k, a.look())
		if err != nil || !inForce {
			return err
		}
		if did = true; len(tasks) == 0 {
			return t.end()
		}
		results, err := a.add()
		if err != nil {
			return err
		}
		did = results[0].Verdict == taskqueue.Added
		return t.end(append(a.tell(), st.note("p:"+s.client+"/act", false))...)
	})
	if err == nil {
		s.written(st)
	}
	return did && err == nil, err
}

// noteTick notes a schedule and its tick, and reports whether it did: a newer schedule, or one
// that is as new and came first, is in force, or has ticked since.
func noteTick(st *step, k *taskqueue.Tick, look []query) (bool, error) {
	schedule, defined, last := "", int64(0), int64(0)
	first := statement("INSERT INTO tq_periodic (queue, name, schedule, last, defined) VALUES ($1, $2, $3, 0, $4) ON CONFLICT DO NOTHING", k.Queue, k.Name, k.Schedule, micros(k.Defined))
	known := row("SELECT schedule, defined, last FROM tq_periodic WHERE queue = $1 AND name = $2 {lock}", []any{k.Queue, k.Name}, &schedule, &defined, &last)
	if err := st.t.run(append(look, first, known)...); err != nil {
		return false, err
	}
	at := micros(k.At)
	if at > st.now.wall+maxAhead.Microseconds() {
		return false, &taskqueue.InvalidError{What: "At", Why: fmt.Sprintf("%v is more than %v after the time of the store: set the clock of this machine", k.At, maxAhead)}
	}
	if schedule != k.Schedule && micros(k.Defined) <= defined || !k.At.IsZero() && at <= last {
		return false, nil
	}
	return true, st.t.run(statement("UPDATE tq_periodic SET schedule = $3, defined = $4, last = $5 WHERE queue = $1 AND name = $2",
		k.Queue, k.Name, k.Schedule, max(defined, micros(k.Defined)), max(last, at)))
}

// Unschedule is a method of taskqueue.Store.
func (s *Store) Unschedule(ctx context.Context, queue, name string) (bool, error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return false, err
	}
	if taskqueue.CheckName("Name", name) != nil {
		return false, nil // none has it
	}
	var n int64
	err := s.db.transact(ctx, writes, func(t tx) error {
		n = 0
		return t.end(query{text: "DELETE FROM tq_periodic WHERE queue = $1 AND name = $2", args: []any{queue, name}, affected: &n})
	})
	return n > 0, err
}

// Periodic is a method of taskqueue.Store.
func (s *Store) Periodic(ctx context.Context, queue string) (all []taskqueue.Periodic, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		all = nil
		const text = "SELECT name, schedule, defined, last FROM tq_periodic WHERE queue = $1 ORDER BY name"
		return t.end(eachRow(text, []any{queue}, func(scan scanner) error {
			var p taskqueue.Periodic
			var defined, last int64
			err := scan(&p.Name, &p.Schedule, &defined, &last)
			p.Defined, p.Last = timeOf(defined), timeOf(last)
			all = append(all, p)
			return err
		}))
	})
	return all, err
}
