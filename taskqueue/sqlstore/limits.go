package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// limits are what the settings of a queue allow a claim. Only a queue with limits has a row
// that its claims wait for each other at.
type limits struct {
	concurrent bool
	rated      bool
	running    int64 // leases, before this claim
	allowance  float64
	at         int64 // the time of the allowance
	full       bool  // no lease may be given after this claim
}

// allowed returns how many of most tasks may be claimed now, and when the next may be, if
// that is fewer.
func (c *claiming) allowed(most int) (n int, next time.Time, err error) {
	l, s := &c.limits, c.settings
	l.concurrent, l.rated = s.Concurrency > 0, s.Rate > 0
	if n = most; s.Paused {
		n = 0
	}
	if !l.concurrent && !l.rated && !c.keys.any() {
		return n, next, nil
	}
	var allowance float64
	var at int64
	err = c.t.run(statement("INSERT INTO tq_limit VALUES ($1, 0, 0) ON CONFLICT DO NOTHING", c.queue),
		row("SELECT allowance, allowed_at FROM tq_limit WHERE queue = $1 {lock}", []any{c.queue}, &allowance, &at))
	if err == nil {
		// Statements of their own: they see what others did that had the row before, and the time when they have.
		var locked moment
		err = c.t.run(query{clock: &locked}, row(runningText, []any{c.queue}, &l.running))
		l.at = locked.steady
	}
	if err != nil {
		return 0, next, err
	}
	if l.concurrent {
		n = min(n, max(s.Concurrency-int(l.running), 0))
	}
	if l.rated {
		burst := float64(max(s.Burst, 1))
		if at == 0 {
			allowance = burst
		}
		l.allowance = min(burst, allowance+float64(max(l.at-at, 0))/1e6*s.Rate)
		if n > int(l.allowance) {
			n = int(l.allowance)
			missing := float64(n+1) - l.allowance
			next = c.nowTime().Add(time.Duration(missing/s.Rate*float64(time.Second)) + time.Microsecond) // rounded up: a claim at that time gets one
		}
	}
	return n, next, nil
}

// note is what is written down of the limits after a claim.
func (l *limits) note(c *claiming, taken int) []query {
	l.full = l.concurrent && int(l.running)+taken >= c.settings.Concurrency
	if !l.rated {
		return nil
	}
	return []query{statement("UPDATE tq_limit SET allowance = $2, allowed_at = $3 WHERE queue = $1", c.queue, l.allowance-float64(taken), l.at)}
}

// maxTrimmed is how many ended tasks a claim forgets beside twice as many as it claims.
const maxTrimmed = 100

// SQLite goes by a partial index only if its condition is in the statement, and if more of
// the index is than of the key of the table.
const (
	// surplusText finds the newest dead letter that is not kept: there are $2 newer ones.
	surplusText = "SELECT ended, id FROM tq_task WHERE queue = $1 AND state > 4 AND state = 6 ORDER BY ended DESC, id DESC LIMIT 1 OFFSET $2"
	runningText = "SELECT count(*) FROM tq_task WHERE queue = $1 AND state = 3 AND lease_end >= 0"
)

// ended is a part of a queue that is to be forgotten, the first so many of it.
const (
	forgetWhere  = "queue = $1 AND forget > 0 AND forget <= $2 ORDER BY forget LIMIT $3"
	expiredWhere = "queue = $1 AND state > 4 AND state = 6 AND ended <= $2 ORDER BY ended, id LIMIT $3"
	surplusWhere = "queue = $1 AND state > 4 AND state = 6 AND (ended, id) <= ($2, $3) ORDER BY ended, id LIMIT $4"
)

func keysOf(where string) string { return "(SELECT queue, id FROM tq_task WHERE " + where + " {skip})" }

// forgetting is what deletes a part of a queue.
func (s *Store) forgetting(where string, n *int64, args ...any) []query {
	tasks := query{text: "DELETE FROM tq_task WHERE (queue, id) IN " + keysOf(where), args: args, affected: n}
	if s.postgres {
		return []query{tasks}
	}
	return []query{statement("DELETE FROM tq_payload WHERE (queue, id) IN "+keysOf(where), args...), tasks}
}

// trim forgets dead letters that the settings do not keep, and returns what forgets the ended
// tasks whose time to be kept has passed, a bounded number of each.
func (c *claiming) trim() ([]query, error) {
	var trimmed int64
	if d := c.settings.DeadRetention; d > 0 {
		if err := c.t.run(c.s.forgetting(expiredWhere, &trimmed, c.queue, c.now.wall-d.Microseconds(), int64(maxTrimmed))...); err != nil {
			return nil, err
		}
	}
	if err := c.trimSurplus(&trimmed); err != nil {
		return nil, err
	}
	c.c.Trimmed = int(trimmed)
	c.count(taskqueue.CountTrimmed, trimmed)
	if c.firstForget == 0 || c.firstForget > c.now.steady {
		return nil, nil
	}
	return c.s.forgetting(forgetWhere, new(int64), c.queue, c.now.steady, int64(maxTrimmed+2*min(max(c.r.Max, 0), taskqueue.MaxBatch))), nil
}

// trimSurplus forgets dead letters behind the newest MaxDead, the oldest first. Claims that do so
// at the same time forget nothing else: each of those letters has MaxDead newer ones, whoever looks.
// To look takes time for each letter that is kept, so few claims do.
func (c *claiming) trimSurplus(trimmed *int64) error {
	if most := c.settings.MaxDead; most <= 0 || !c.s.fronts.trims(c.queue, most) && len(c.dead) == 0 {
		return nil
	}
	var ended, n int64
	id := ""
	if err := c.t.run(row(surplusText, []any{c.queue, int64(c.settings.MaxDead)}, &ended, &id)); err != nil || id == "" {
		return err
	}
	err := c.t.run(c.s.forgetting(surplusWhere, &n, c.queue, ended, id, int64(maxTrimmed))...)
	if *trimmed += n; n == maxTrimmed {
		c.s.fronts.buried(c.queue)
	}
	return err
}

// SetLimit is a method of taskqueue.Store.
func (s *Store) SetLimit(ctx context.Context, queue string, l taskqueue.Limit) error {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckLimit(l)); err != nil {
		return err
	}
	err := s.db.transact(ctx, writes, func(t tx) error {
		st := newStep(t, queue)
		before := ""
		if err := t.run(query{clock: &st.now}, statement(newQueueText, queue, ""),
			statement("INSERT INTO tq_pattern VALUES ($1, '') ON CONFLICT DO NOTHING", queue),
			row("SELECT limits FROM tq_pattern WHERE queue = $1 {lock}", []any{queue}, &before)); err != nil {
			return err
		}
		after, err := limit.Changed(before, l)
		if err != nil || after == before {
			return err
		}
		return t.end(append(s.tell(st), statement("UPDATE tq_pattern SET limits = $2 WHERE queue = $1", queue, after))...)
	})
	if err == nil {
		s.hints.wake(queue)
	}
	return err
}
