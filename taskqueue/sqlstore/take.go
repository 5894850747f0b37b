package sqlstore

import (
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/classes"
)

var pickText = "SELECT " + recordNames + " FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due >= $3 AND due <= $4 ORDER BY due, id LIMIT $5 {skip}"

// pickAheadText is pickText of all classes at once, in the order in which they are given.
var pickAheadText = "SELECT p.* FROM unnest($2::smallint[], $3::bigint[]) AS c(class, front) CROSS JOIN LATERAL (SELECT " + recordNames +
	" FROM tq_task WHERE queue = $1 AND class = c.class AND state < 3 AND due >= c.front AND due <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)" +
	" ORDER BY due, id LIMIT $4 {skip}) AS p LIMIT $4"

// An ahead is a set of tasks that a claim locks in the message in which it looks whether it may have them.
type ahead struct {
	want  int
	base  int64 // the first of the tokens
	found []*record
}

// pickAhead is the query that locks the tasks.
func (c *claiming) pickAhead() query {
	var order, front []int64
	for _, class := range classes.Order(c.r.Weigh) {
		order, front = append(order, int64(class)), append(front, c.front[class])
	}
	return eachRow(pickAheadText, []any{c.queue, order, front, int64(c.ahead.want)}, records(&c.ahead.found))
}

// plain reports whether the queue has no limits and is not paused.
func (c *claiming) plain() bool {
	return !c.settings.Paused && c.settings.Rate == 0 && c.settings.Concurrency == 0 && c.keys == nil
}

// takeAhead claims what the look has taken with it, if the claim may have n tasks and has changed nothing since.
// It reports whether it has claimed all that is due or all that it may have.
func (c *claiming) takeAhead(n int, looks, room *int) (done bool, err error) {
	a := c.ahead
	if a == nil {
		return false, nil
	}
	if n == a.want && c.plain() && !c.stirs {
		c.base = a.base
		found := slices.DeleteFunc(a.found, func(r *record) bool { return r.due > c.now.wall })
		if err := c.consider(found, n, looks, room); err != nil {
			return false, err
		}
		if c.full = len(c.tasks) == n && n > 0; c.full || len(c.tasks) == len(found) && len(found) > 0 || *room < 0 {
			return true, nil
		}
	}
	return false, c.t.run(c.lookHeads())
}

// take claims up to n tasks whose time has come, the most urgent class first, or the classes
// in an order that is drawn by weight. It looks at no more than MaxBatch tasks, and what it
// claims has no more than MaxBatchBytes, but for the first.
func (c *claiming) take(n int) error {
	looks, room := taskqueue.MaxBatch, taskqueue.MaxBatchBytes
	if done, err := c.takeAhead(n, &looks, &room); done || err != nil {
		return err
	}
	for from := c.front; ; {
		for _, class := range classes.Order(c.r.Weigh) {
			for len(c.tasks) < n && looks > 0 && room >= 0 && c.heads[class] >= 0 && c.heads[class] <= c.now.wall {
				if err := c.pick(class, n, &looks, &room); err != nil {
					return err
				}
			}
		}
		if n == 0 || len(c.tasks)+len(c.changed)+len(c.dead) > 0 || from == (dues{}) {
			return nil
		}
		// Nothing was found behind the front.
		from, c.front = dues{}, dues{}
		if err := c.t.run(c.lookHeads()); err != nil {
			return err
		}
	}
}

// lookAgain has the claim find tasks that wait again by it. It reports whether there are any.
func (c *claiming) lookAgain() bool {
	waits := c.due.any()
	for class, due := range c.due {
		if due >= 0 {
			c.front[class], c.sooner = min(c.front[class], due), true
		}
	}
	c.due = noDues()
	return waits
}

// pick claims tasks of one class, as many as one look finds.
func (c *claiming) pick(class, n int, looks, room *int) error {
	want := min(max(n-len(c.tasks), 2*c.parked), *looks) // where many are parked, more of them at a time
	c.parked = 0
	var found []*record
	look := eachRow(pickText, []any{c.queue, int64(class), c.front[class], c.now.wall, int64(want)}, records(&found))
	if err := c.t.run(c.nextBase([]query{look})...); err != nil {
		return err
	}
	if len(found) < want { // nothing more is due, or others have it
		c.heads[class], c.moved, c.skipped = -1, true, c.skipped || len(found) == 0
	}
	return c.consider(found, n, looks, room)
}

// consider claims those of some tasks that it may have.
func (c *claiming) consider(found []*record, n int, looks, room *int) error {
	if err := c.knowRates(found); err != nil {
		return err
	}
	*looks -= len(found)
	again := false
	for _, r := range found {
		if len(c.tasks) == n { // the rest is for others
			break
		}
		switch {
		case c.expired(r):
			c.expire(r)
			again = true
		case len(c.tasks) > 0 && r.weight() > *room:
			*room = -1
			return nil
		case !c.admits(r):
			c.parked, again = c.parked+1, true
		default:
			*room -= r.weight()
			c.begin(r, c.r.Worker, c.base+int64(len(c.tasks)), c.r.Lease)
			c.tasks = append(c.tasks, r)
			c.count(taskqueue.CountClaimed, 1)
		}
		c.changed, c.front[classOf(r.Priority)], c.moved = append(c.changed, r), r.due, true
	}
	if !again {
		return nil
	}
	// There is room for more, and the next look is not to find these.
	saved := append([]query{c.saveBegun()}, save(c.changed)...)
	c.changed = c.changed[:0]
	return c.t.run(saved...)
}

// draw is the query of the first of the tokens of a claim on PostgreSQL.
func draw(base *int64) query { return row("SELECT nextval('tq_token')", nil, base) }

// nextBase adds what finds the first token of this claim, before its first tasks are taken.
func (c *claiming) nextBase(queries []query) []query {
	switch {
	case len(c.tasks) > 0:
	case c.s.postgres:
		queries = append(queries, draw(&c.base))
	default:
		c.base = max(c.lastToken+1, c.now.wall)
	}
	return queries
}
