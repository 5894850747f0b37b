package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Extend is a method of taskqueue.Store.
func (e *Engine) Extend(ctx context.Context, r taskqueue.ExtendRequest) (results []taskqueue.ExtendResult, err error) {
	if err := taskqueue.CheckExtend(r); err != nil {
		return nil, err
	}
	err = e.do(ctx, r.Queue, func(tx Tx, q *queue, now time.Time) error {
		q.step(now)
		results = make([]taskqueue.ExtendResult, len(r.Refs))
		for i, ref := range r.Refs {
			results[i] = q.prolong(tx, now, ref, r)
		}
		return nil
	})
	return results, err
}

// prolong extends one lease. One that has run out, but that nobody has reaped yet,
// is still the worker's.
func (q *queue) prolong(tx Tx, now time.Time, ref taskqueue.Ref, r taskqueue.ExtendRequest) taskqueue.ExtendResult {
	l := q.byID[ref.ID]
	if l == nil || l.token != ref.Token {
		return taskqueue.Lost
	}
	rec, err := load(tx, q.name, ref.ID)
	if rec == nil || err != nil {
		return taskqueue.Lost
	}
	q.extend(l, now, r.Lease)
	if p, given := r.Progress[ref.ID]; given {
		q.change(tx, rec, func(rec *record) { rec.Progress = p })
	}
	if rec.CancelRequested {
		return taskqueue.CancelRequested
	}
	return taskqueue.Extended
}

// Settle is a method of taskqueue.Store.
func (e *Engine) Settle(ctx context.Context, name string, outcomes []taskqueue.Outcome) (results []taskqueue.SettleResult, err error) {
	if err := taskqueue.CheckOutcomes(outcomes); err != nil {
		return nil, err
	}
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		q.step(now)
		records := make(map[string]*record, len(outcomes)) // read before the first write
		for i := range outcomes {
			// One that cannot be read is as one that is lost: the next claim says so.
			records[outcomes[i].ID], _ = load(tx, name, outcomes[i].ID)
		}
		results = make([]taskqueue.SettleResult, len(outcomes))
		for i := range outcomes {
			r := records[outcomes[i].ID]
			results[i] = q.settle(tx, now, r, &outcomes[i])
		}
		return nil
	})
	return results, err
}

// settle takes an outcome over if its token is that of the last claim, also when
// its lease has run out and the task waits for its next run by now: the work has
// been done, and nobody else has begun it.
func (q *queue) settle(tx Tx, now time.Time, r *record, o *taskqueue.Outcome) taskqueue.SettleResult {
	switch {
	case r == nil:
		return taskqueue.Gone
	case r.Token != o.Token:
		return taskqueue.Stale
	case r.SettledToken == o.Token:
		return r.settled()
	case r.State != taskqueue.StateRunning && !r.Reaped:
		return taskqueue.Stale // Retry, Promote or Cancel has decided meanwhile
	}
	q.giveBack(r.ID)
	q.sooner, q.full = q.sooner || q.full, false
	q.change(tx, r, func(r *record) {
		revived := r.State.Ended()
		if r.Reaped {
			q.uncrash(r)
		}
		r.SettledToken = o.Token
		q.end(r, o, now)
		if revived && r.waits() && r.UniqueKey != "" && r.Until == taskqueue.End {
			// Its end had freed its key. It waits again only if it has that again.
			if q.holder(tx, r.UniqueKey) != "" {
				q.bury(r, now)
			} else {
				r.HoldsKey = true
			}
		}
	})
	return r.settled()
}

// settled is what is said of a run that is settled.
func (r *record) settled() taskqueue.SettleResult {
	if r.State == taskqueue.StateCancelled && r.CancelRequested {
		return taskqueue.Overruled
	}
	return taskqueue.Settled
}

// uncrash takes back what crash has made of a record.
func (q *queue) uncrash(r *record) {
	r.Crashes--
	q.count(taskqueue.CountCrashed, -1)
	switch r.State {
	case taskqueue.StateDead:
		q.count(taskqueue.CountDead, -1)
	case taskqueue.StateCancelled:
		q.count(taskqueue.CountCancelled, -1)
	}
	r.Reaped, r.EndedAt = false, time.Time{}
}

// end is what an outcome makes of a record.
func (q *queue) end(r *record, o *taskqueue.Outcome, now time.Time) {
	if o.Error != "" {
		r.LastError = o.Error
	}
	kind := o.Kind
	if r.CancelRequested && kind != taskqueue.Succeeded {
		q.over(r, taskqueue.StateCancelled, now)
		q.count(taskqueue.CountCancelled, 1)
		return
	}
	switch kind {
	case taskqueue.Succeeded:
		r.Result = o.Result
		q.over(r, taskqueue.StateDone, now)
		q.count(taskqueue.CountDone, 1)
	case taskqueue.Buried:
		r.Failures++
		q.count(taskqueue.CountFailed, 1)
		q.bury(r, now)
	case taskqueue.Failed:
		r.Failures++
		r.Releases = 0
		q.count(taskqueue.CountFailed, 1)
		if r.Failures >= r.MaxFailures {
			q.bury(r, now)
			return
		}
		q.wait(r, taskqueue.StateRetrying, now, o.Wait())
	default: // given back
		r.Attempt--
		if r.Releases++; kind == taskqueue.Snoozed {
			r.Releases = 0
		}
		q.count(taskqueue.CountReleased, 1)
		r.Lasts = r.Lasts || kind == taskqueue.Snoozed
		if kind == taskqueue.Unhandled {
			q.count(taskqueue.CountUnhandled, 1)
		}
		state := taskqueue.StateScheduled
		if r.Failures > 0 {
			state = taskqueue.StateRetrying
		}
		q.wait(r, state, now, o.Wait())
	}
}

func (q *queue) wait(r *record, s taskqueue.State, now time.Time, after time.Duration) {
	r.State, r.DueAt = s, dueIn(now, after)
}

// over ends a task. Its unique key is free from now on.
func (q *queue) over(r *record, s taskqueue.State, now time.Time) {
	r.State, r.EndedAt, r.HoldsKey = s, stored(now), false
}

func (q *queue) bury(r *record, now time.Time) {
	q.over(r, taskqueue.StateDead, now)
	q.count(taskqueue.CountDead, 1)
	if q.claiming != nil {
		q.claiming.Dead = append(q.claiming.Dead, r.ID)
	}
}

// reap ends leases that have run out, some at a time: the next claim goes on.
func (q *queue) reap(tx Tx, now time.Time) {
	for range maxReaped {
		if len(q.leases) == 0 || q.leases[0].end.After(now) {
			return
		}
		l := q.leases[0]
		if q.spare(l, now) {
			continue
		}
		r, err := load(tx, q.name, l.id)
		if r == nil {
			q.orphan(tx, now, runningKey(q.name, l.id), l.id, taskqueue.StateRunning, err)
			continue
		}
		q.giveBack(l.id)
		q.change(tx, r, func(r *record) { q.crash(r, now) })
	}
}

// crash is what a lease that has run out makes of a record. The first crash is
// followed by a run at once, each further one by a longer wait.
func (q *queue) crash(r *record, now time.Time) {
	r.Crashes++
	r.Reaped = true
	q.count(taskqueue.CountCrashed, 1)
	r.LastError = "its lease ran out: the worker " + r.Worker + " has ended, or could not reach the store"
	switch {
	case r.CancelRequested:
		q.over(r, taskqueue.StateCancelled, now)
		q.count(taskqueue.CountCancelled, 1)
	case r.Crashes >= r.MaxCrashes:
		q.bury(r, now)
	default:
		var after time.Duration
		if r.Crashes > 1 {
			after = min(time.Second<<min(r.Crashes-2, 10), time.Minute)
		}
		q.wait(r, taskqueue.StateRetrying, now, after)
	}
}

// trim forgets ended tasks whose time to be kept has passed, and dead letters that
// the settings do not keep. It returns how many dead letters that were.
func (q *queue) trim(tx Tx, now time.Time) (dead int) {
	s := q.meta.Settings
	q.forget(tx, key(keyForget, q.name), func(at time.Time) bool { return !at.After(now) }, "")
	if s.DeadRetention > 0 {
		dead = q.forget(tx, endedPrefix(q.name, taskqueue.StateDead), func(at time.Time) bool { return !at.Add(s.DeadRetention).After(now) }, taskqueue.CountTrimmed)
	}
	if s.MaxDead > 0 {
		over := q.meta.States[taskqueue.StateDead] - int64(s.MaxDead)
		dead += q.forget(tx, endedPrefix(q.name, taskqueue.StateDead), func(time.Time) bool { over--; return over >= 0 }, taskqueue.CountTrimmed)
	}
	return dead
}

// forget deletes the first tasks of an index, while f says so of their times, and
// returns how many.
func (q *queue) forget(tx Tx, prefix []byte, f func(time.Time) bool, c taskqueue.Counter) int {
	var entries [][]byte
	scan(tx, prefix, func(rest, _ []byte) bool {
		if len(entries) == maxTrimmed || !f(fromMicros(rest)) {
			return false
		}
		entries = append(entries, slices.Concat(prefix, rest))
		return true
	})
	for _, k := range entries {
		id := string(k[len(prefix)+8:])
		switch r, _ := load(tx, q.name, id); {
		case r != nil:
			q.remove(tx, r)
		case k[0] == keyEnded:
			q.dropEntry(tx, k, taskqueue.StateDead)
		default: // what its state was nobody knows
			tx.Delete(k)
			tx.Delete(taskKey(q.name, id))
		}
	}
	if c != "" {
		q.count(c, len(entries))
	}
	return len(entries)
}
