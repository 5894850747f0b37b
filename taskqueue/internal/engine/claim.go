package engine

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/classes"
)

// Claim is a method of taskqueue.Store.
func (e *Engine) Claim(ctx context.Context, r taskqueue.ClaimRequest) (c taskqueue.Claimed, err error) {
	if r.Lease <= 0 || r.Worker == "" {
		return c, &taskqueue.InvalidError{What: "claim", Why: "a worker and a lease longer than 0 are needed"}
	}
	err = e.do(ctx, r.Queue, func(tx Tx, q *queue, now time.Time) error {
		c, err = q.claim(tx, now, r)
		// What was reaped need not be told to others if nothing of it is left.
		q.sooner = q.sooner && len(c.Tasks) == min(r.Max, taskqueue.MaxBatch)
		c.Seen = e.seen(r.Queue)
		return err
	})
	return c, err
}

func (q *queue) claim(tx Tx, now time.Time, r taskqueue.ClaimRequest) (c taskqueue.Claimed, err error) {
	c.Now = now
	q.step(now)
	if last := q.claims[r.Worker]; last != nil && r.Nonce != "" && last.nonce == r.Nonce {
		c.Tasks, err = q.again(tx, now, last, r)
		c.NextDue = now
		return c, err
	}
	q.claiming = &c
	defer func() { q.claiming = nil }()
	q.reap(tx, now)
	c.Trimmed = q.trim(tx, now)
	most := min(max(r.Max, 0), taskqueue.MaxBatch)
	n, next := most, time.Time{}
	if q.meta.Settings.Paused {
		n = 0
	} else {
		n, next = q.allowed(now, most)
	}
	q.take(tx, now, n, &c, r)
	limit := q.meta.Settings.Concurrency
	q.full = limit > 0 && len(q.leases) >= limit && len(c.Tasks) < most
	q.allowance -= float64(len(c.Tasks))
	q.remember(now, r, c.Tasks)
	c.NextDue = q.nextDue(tx, now, len(c.Tasks) < n, next)
	return c, nil
}

// again answers a claim that is repeated: with what it got and still has.
func (q *queue) again(tx Tx, now time.Time, last *lastClaim, r taskqueue.ClaimRequest) (tasks []taskqueue.Info, err error) {
	for _, ref := range last.refs {
		l := q.byID[ref.ID]
		if l == nil || l.token != ref.Token {
			continue
		}
		rec, err := load(tx, q.name, ref.ID)
		if err != nil {
			return nil, err
		}
		q.extend(l, now, r.Lease)
		rec.LeaseEnd = l.end
		tasks = append(tasks, rec.Info)
	}
	return tasks, nil
}

// remember keeps the last claim of a worker, and forgets workers that have not
// called for an hour and have nothing.
func (q *queue) remember(now time.Time, r taskqueue.ClaimRequest, tasks []taskqueue.Info) {
	last := &lastClaim{nonce: r.Nonce, at: now}
	for i := range tasks {
		last.refs = append(last.refs, taskqueue.Ref{ID: tasks[i].ID, Token: tasks[i].Token})
	}
	if _, known := q.claims[r.Worker]; !known {
		for w, c := range q.claims {
			if now.Sub(c.at) > time.Hour {
				delete(q.claims, w)
			}
		}
	}
	q.claims[r.Worker] = last
}

// take claims up to n tasks whose time has come, the most urgent class first, or
// the classes in an order that is drawn by weight.
func (q *queue) take(tx Tx, now time.Time, n int, c *taskqueue.Claimed, r taskqueue.ClaimRequest) {
	for _, class := range classes.Order(r.Weigh) {
		for len(c.Tasks) < n {
			ids := q.due(tx, class, now, n-len(c.Tasks))
			if len(ids) == 0 {
				break
			}
			for _, d := range ids {
				if rec := q.begin(tx, now, d, r); rec != nil {
					c.Tasks = append(c.Tasks, rec.Info)
				}
			}
		}
	}
}

// A dueEntry is an entry of the index of what waits.
type dueEntry struct {
	id  string
	key []byte
}

// due returns the first entries of a class whose time has come.
func (q *queue) due(tx Tx, class int, now time.Time, most int) (entries []dueEntry) {
	prefix := classKey(q.name, class)
	scan(tx, prefix, func(rest, _ []byte) bool {
		if fromMicros(rest).After(now) {
			return false
		}
		entries = append(entries, dueEntry{string(rest[8:]), append(prefix[:len(prefix):len(prefix)], rest...)})
		return len(entries) < most
	})
	return entries
}

// begin puts a task that waits under a lease. It returns nil if the task is not to
// run: it has expired, or its record is missing or cannot be read, which makes a
// dead letter of it.
func (q *queue) begin(tx Tx, now time.Time, d dueEntry, r taskqueue.ClaimRequest) *record {
	rec, err := load(tx, q.name, d.id)
	if rec == nil {
		q.lost(tx, now, d, err)
		return nil
	}
	if rec.Attempt == 0 && !rec.ExpiresAt.IsZero() && rec.ExpiresAt.Before(now) {
		q.change(tx, rec, func(rec *record) {
			rec.LastError = "it was not started before it expired"
			q.bury(rec, now)
		})
		q.count(taskqueue.CountExpired, 1)
		return nil
	}
	q.change(tx, rec, func(rec *record) {
		q.meta.LastToken = max(q.meta.LastToken+1, now.UnixMicro())
		rec.State, rec.Token, rec.Worker = taskqueue.StateRunning, q.meta.LastToken, r.Worker
		rec.Attempt++
		rec.StartedAt, rec.Reaped = stored(now), false
		if rec.Until == taskqueue.Start {
			rec.HoldsKey = false
		}
	})
	l := &lease{id: rec.ID, token: rec.Token, worker: r.Worker, from: now, end: now.Add(r.Lease), length: r.Lease}
	q.lend(l)
	rec.LeaseEnd = l.end
	q.count(taskqueue.CountClaimed, 1)
	return rec
}

// lost makes a dead letter of an entry without a record.
func (q *queue) lost(tx Tx, now time.Time, d dueEntry, err error) {
	why := "the store had lost its record"
	if err != nil {
		why = err.Error()
	}
	tx.Delete(d.key)
	q.meta.States[taskqueue.StateScheduled]--
	r := &record{Info: taskqueue.Info{Task: taskqueue.Task{ID: d.id, Queue: q.name}, LastError: why}}
	q.bury(r, now)
	q.insert(tx, r)
}

// nextDue returns when a claim could get something more. more: it has taken less
// than it was allowed, so nothing is due now.
func (q *queue) nextDue(tx Tx, now time.Time, more bool, allowed time.Time) (next time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if len(q.leases) > 0 {
		earlier(q.leases[0].end)
	}
	s := q.meta.Settings
	full := s.Concurrency > 0 && len(q.leases) >= s.Concurrency
	switch {
	case s.Paused || full:
		return next
	case !more && !allowed.IsZero():
		earlier(allowed)
		return next
	}
	for class := range taskqueue.Priorities {
		scan(tx, classKey(q.name, class), func(rest, _ []byte) bool {
			earlier(fromMicros(rest))
			return false
		})
	}
	if !next.IsZero() && next.Before(now) {
		return now
	}
	return next
}
