package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/classes"
)

// Claim is a method of taskqueue.Store.
func (e *Engine) Claim(ctx context.Context, r taskqueue.ClaimRequest) (c taskqueue.Claimed, err error) {
	if err := taskqueue.CheckClaim(r); err != nil {
		return c, err
	}
	err = e.do(ctx, r.Queue, func(tx Tx, q *queue, now time.Time) error {
		c = q.claim(tx, now, r)
		// What was reaped need not be told to others if nothing of it is left.
		q.sooner = q.sooner && len(c.Tasks) == min(r.Max, taskqueue.MaxBatch)
		c.Seen = e.seen(r.Queue)
		return nil
	})
	return c, err
}

func (q *queue) claim(tx Tx, now time.Time, r taskqueue.ClaimRequest) (c taskqueue.Claimed) {
	c.Now = now
	q.step(now)
	switch last := q.claims[r.Worker]; {
	case last == nil || r.Nonce == "":
	case last.nonce == r.Nonce:
		c.Tasks, c.NextDue = q.again(tx, now, last, r), now
		return c
	case isLate(r.Nonce, last.nonce):
		c.NextDue = now
		return c
	}
	q.claiming = &c
	defer func() { q.claiming = nil }()
	q.reap(tx, now)
	c.Trimmed = q.trim(tx, now)
	most := min(max(r.Max, 0), taskqueue.MaxBatch)
	n, next := q.allowed(now, most)
	if q.meta.Settings.Paused {
		n = 0
	}
	q.take(tx, now, n, &c, r)
	limit := q.meta.Settings.Concurrency
	q.full = limit > 0 && len(q.leases) >= limit && len(c.Tasks) < most
	if q.meta.Settings.Rate > 0 {
		q.allowance -= float64(len(c.Tasks))
	}
	q.remember(now, r, c.Tasks)
	c.NextDue = q.nextDue(tx, now, len(c.Tasks) < n, next)
	return c
}

// isLate reports whether a nonce is of a claim before that of last, by the same worker.
func isLate(nonce, last string) bool {
	life, number, numbered := cutNonce(nonce)
	of, n, known := cutNonce(last)
	return numbered && known && life == of && number < n
}

// cutNonce cuts a nonce at its last slash, behind which there is a number.
func cutNonce(nonce string) (life string, number uint64, ok bool) {
	i := strings.LastIndexByte(nonce, '/')
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(nonce[i+1:], 10, 64)
	return nonce[:i], number, err == nil
}

// again answers a claim that is repeated: with what it got and still has.
func (q *queue) again(tx Tx, now time.Time, last *lastClaim, r taskqueue.ClaimRequest) (tasks []taskqueue.Info) {
	room := taskqueue.MaxBatchBytes
	for _, ref := range last.refs {
		l := q.byID[ref.ID]
		if l == nil || l.token != ref.Token {
			continue
		}
		q.extend(l, now, r.Lease)
		rec, _ := load(tx, q.name, ref.ID)
		if rec == nil {
			continue // its lease will not be extended
		}
		if room -= size(&rec.Info); room < 0 {
			rec.Progress = nil // what it has noted since then
		}
		rec.LeaseEnd = l.end
		tasks = append(tasks, rec.Info)
	}
	return tasks
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
// the classes in an order that is drawn by weight. It looks at no more than MaxBatch
// tasks, and what it claims has no more than MaxBatchBytes, but for the first.
func (q *queue) take(tx Tx, now time.Time, n int, c *taskqueue.Claimed, r taskqueue.ClaimRequest) {
	looks, room := taskqueue.MaxBatch, taskqueue.MaxBatchBytes
	for _, class := range classes.Order(r.Weigh) {
		for len(c.Tasks) < n && looks > 0 {
			entries := q.due(tx, class, now, min(n-len(c.Tasks), looks))
			if len(entries) == 0 {
				break
			}
			for _, d := range entries {
				looks--
				rec, err := load(tx, q.name, d.id)
				switch {
				case rec == nil:
					q.orphan(tx, now, d.key, d.id, d.state, err)
				case q.expired(rec, now):
					q.expire(tx, rec, now)
				case len(c.Tasks) > 0 && size(&rec.Info) > room:
					return
				default:
					room -= size(&rec.Info)
					q.begin(tx, now, rec, r)
					c.Tasks = append(c.Tasks, rec.Info)
				}
			}
		}
	}
}

// size is what a task counts for MaxBatchBytes.
func size(i *taskqueue.Info) int {
	n := len(i.Payload) + len(i.Result) + len(i.Progress)
	for k, v := range i.Headers {
		n += len(k) + len(v)
	}
	return n
}

// A dueEntry is an entry of the index of what waits.
type dueEntry struct {
	id    string
	key   []byte
	state taskqueue.State
}

// due returns the first entries of a class whose time has come.
func (q *queue) due(tx Tx, class int, now time.Time, most int) (entries []dueEntry) {
	prefix := classKey(q.name, class)
	scan(tx, prefix, func(rest, value []byte) bool {
		if fromMicros(rest).After(now) {
			return false
		}
		entries = append(entries, dueEntry{string(rest[8:]), slices.Concat(prefix, rest), waiting(value)})
		return len(entries) < most
	})
	return entries
}

// expired reports whether r is not to be started any more.
func (q *queue) expired(r *record, now time.Time) bool {
	return r.Attempt == 0 && !r.Lasts && !r.ExpiresAt.IsZero() && r.ExpiresAt.Before(now)
}

func (q *queue) expire(tx Tx, r *record, now time.Time) {
	q.change(tx, r, func(r *record) {
		r.LastError = "it was not started before it expired"
		q.bury(r, now)
	})
	q.count(taskqueue.CountExpired, 1)
}

// begin puts a task that waits under a lease.
func (q *queue) begin(tx Tx, now time.Time, rec *record, r taskqueue.ClaimRequest) {
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
