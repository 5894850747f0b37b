package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// maxReaped is how many leases one claim ends at most.
const maxReaped = 100

// minGap is the shortest gap, in µs, that is noted. Leases shorter than three of them are not
// spared.
const minGap = 1000

// A sight is what is known of when workers have called.
type sight struct {
	last  int64 // when the last one has called, by the steady clock; 0: none ever has
	least int64 // the shortest lease that any of them has asked for
}

const sightText = "SELECT coalesce(max(last_seen), 0) AS last, coalesce(min(CASE WHEN least > 0 THEN least END), 0) AS least FROM tq_worker WHERE queue = $1 AND worker > 'e'"

// query reads it.
func (g *sight) query(queue string) query { return row(sightText, []any{queue}, &g.last, &g.least) }

// It leaves out what others have locked: they extend, settle or reap it, after the same gap. To wait
// for them would have callers, who have locked their own runs, wait for each other.
const gapText = "UPDATE tq_task SET spare_end = $2 + lease WHERE (queue, id) IN (SELECT queue, id FROM tq_task WHERE " +
	"queue = $1 AND state = 3 AND lease_end >= 0 AND lease < $3 AND flags & 8 = 0 {skip})"

// maxLag is how much earlier, in µs, a call may have read the clock than one that is in the database by now.
const maxLag = 1_000_000

// aheadText has nobody have called in the future: the next gap would not be seen. Rows that others
// have locked are written by their calls.
const aheadText = "UPDATE tq_worker SET last_seen = $2 WHERE (queue, worker) IN (SELECT queue, worker FROM tq_worker WHERE queue = $1 AND last_seen > $2 {skip})"

// step is what a call of a worker does after a gap, in which none has called: every lease
// that is shorter than three times the gap may last once more, from now on. The worker could
// not call, or we could not hear it, so its silence does not mean that it has crashed.
func (g *sight) step(s *step) []query {
	gap := s.now.steady - g.last
	if gap < -maxLag { // the clock was put back
		return []query{statement(aheadText, s.queue, s.now.steady), statement(bootPaceText, s.queue)}
	}
	if g.last == 0 || gap < minGap || g.least >= 3*gap {
		return nil
	}
	return []query{statement(gapText, s.queue, s.now.steady, 3*gap)}
}

// bootText gives each lease of an earlier start of the machine its length once more: it has
// ended, and nobody could call meanwhile.
const bootText = "UPDATE tq_task SET lease_end = $2 + lease, spare_end = 0, flags = flags | 8 WHERE queue = $1 AND state = 3 AND lease_end >= 0"

// bootWorkersText has no worker have called in the future: the clock has begun anew.
const bootWorkersText = "UPDATE tq_worker SET last_seen = min(last_seen, $2), noted = min(noted, $2) WHERE queue = $1"

// bootForgetText keeps what has ended before an earlier start for its time once more.
const bootForgetText = "UPDATE tq_task SET forget = $2 + max(retention / 1000, $3) WHERE queue = $1 AND forget > 0"

// bootPaceText has all rates of limits be full: their times are of another clock.
const bootPaceText = "UPDATE tq_pace SET at = 0 WHERE queue = $1"

// recallText has what was ready when it was written be so by a clock that was put back since, and
// recallParkedText what a limit keeps of that.
const (
	recallText       = "UPDATE tq_task SET due = $2 WHERE queue = $1 AND state < 3 AND due > $2 AND flags & 64 <> 0"
	recallParkedText = "UPDATE tq_task SET due = $2 WHERE queue = $1 AND state = 4 AND due > $2 AND flags & 64 <> 0"
)

// maxStep is by how much, in µs, the wall clock may part from the steady one unnoticed.
const maxStep = 1_000_000

// clockState is what a queue keeps of the clocks of the machine, and stepped whether the wall clock
// was put forward or back since, or the machine was started.
func (m moment) clockState() string { return fmt.Sprintf("%s %d", m.boot, m.wall-m.steady) }

func (m moment) stepped(since string) (started, stepped bool) {
	boot, text, _ := strings.Cut(since, " ")
	ahead, err := strconv.ParseInt(text, 10, 64)
	apart := m.wall - m.steady - ahead
	return since != "" && boot != m.boot, boot != m.boot || err != nil || apart > maxStep || apart < -maxStep
}

var reapText = "SELECT " + recordNames + " FROM tq_task WHERE queue = $1 AND state = 3 AND lease_end <= $2 ORDER BY lease_end LIMIT $3 {skip}"

// reap ends leases that have run out, some at a time: the next claim goes on.
func (c *claiming) reap() error {
	var queries []query
	started, stepped := false, false
	if !c.s.postgres {
		started, stepped = c.now.stepped(c.boot)
	}
	if started {
		queries = append(queries, statement(bootText, c.queue, c.now.steady), statement(bootWorkersText, c.queue, c.now.steady),
			statement(bootForgetText, c.queue, c.now.steady, taskqueue.MinRetention.Microseconds()), statement(bootPaceText, c.queue))
		c.firstEnd = 1
	} else {
		queries = c.seen.step(c.step)
	}
	if stepped {
		c.front = dues{}
		queries = append(queries, statement("UPDATE tq_queue SET boot = $2 WHERE queue = $1", c.queue, c.now.clockState()),
			statement(recallText, c.queue, c.now.wall), statement(recallParkedText, c.queue, c.now.wall), c.lookHeads())
	}
	if c.firstEnd == 0 || c.firstEnd > c.now.steady {
		return c.t.run(queries...)
	}
	var over []*record
	reaped := eachRow(reapText, []any{c.queue, c.now.steady, int64(maxReaped)}, records(&over))
	if err := c.t.run(append(queries, reaped)...); err != nil {
		return err
	}
	for _, r := range over {
		// Once only: where nobody calls often enough there is always a gap.
		if r.spareEnd > c.now.steady && !r.has(spared) {
			r.leaseEnd = r.spareEnd
			r.set(spared, true)
		} else {
			c.crash(r)
		}
	}
	c.lookAgain()
	return c.t.run(append(save(over), c.lookHeads())...)
}

// extended says what becomes of the leases of runs, and returns the tasks of those that go on.
func extended(runs []store.Ref, records map[string]*record) (results []store.ExtendResult, on []*record) {
	results = make([]store.ExtendResult, len(runs))
	for i, ref := range runs {
		one := records[ref.ID]
		switch {
		case one == nil || one.State != taskqueue.StateRunning || one.Token != ref.Token:
			results[i] = store.Lost
			continue
		case one.has(asked):
			results[i] = store.CancelRequested
		default:
			results[i] = store.Extended
		}
		on = append(on, one)
	}
	return results, on
}

// Extend is a method of taskqueue.Store. A lease that has run out, but that nobody has reaped
// yet, is still the worker's.
func (s *Store) Extend(ctx context.Context, r store.ExtendRequest) (results []store.ExtendResult, err error) {
	if err := errors.Join(taskqueue.CheckName("queue", r.Queue), taskqueue.CheckExtend(r)); err != nil {
		return nil, err
	}
	err = s.db.transact(ctx, writes, func(t tx) error {
		st := newStep(t, r.Queue)
		st.least = r.Lease.Microseconds()
		var seen sight
		ids := make([]string, len(r.Refs))
		for i, ref := range r.Refs {
			ids[i] = ref.ID
		}
		records := map[string]*record{}
		if err := t.run(query{clock: &st.now}, seen.query(r.Queue), load(lendTasks, r.Queue, ids, records)); err != nil {
			return err
		}
		var changed, noted []*record
		results, changed = extended(r.Refs, records)
		for _, one := range changed {
			if _, given := r.Progress[one.ID]; given {
				noted = append(noted, one)
			}
		}
		if err := t.run(append(seen.step(st), loadPayloads(noted, nil))...); err != nil {
			return err
		}
		for _, one := range noted {
			p := r.Progress[one.ID]
			one.extra += int64(len(p) - len(one.Progress))
			one.Progress, one.texts = p, one.texts|progressText
		}
		for _, one := range changed {
			st.lend(one, r.Lease)
		}
		return t.end(append(save(changed), st.note("p:"+s.client+"/extend", true))...)
	})
	return results, err
}
