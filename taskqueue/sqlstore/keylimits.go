package sqlstore

import (
	"maps"
	"slices"
	"strconv"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// A task that a limit of its LimitKey or type keeps is parked: claims that look for what is due do not
// see it. It is in the state parked, with the version of the limits and its group in the column limited.
// While a task runs under a limit the column has its group alone, which is how leases are counted.
//
// A parked task comes back to its place, which class, due and id say, by a claim that finds a wake of
// its group: a step that ends a lease leaves one, and the claim that a rate has kept from it leaves one
// for when the rate allows it. A claim that finds tasks of another version brings all of them back.

// A wake tells claims to look at what is parked of a group, from a time on.
type wake struct {
	name, group string
	at          float64
}

var paceColumns = []column{{"queue", "text"}, {"name", "text"}, {"grp", "text"}, {"wakes", "bigint"}, {"at", "float8"}}

var (
	insertPace = upsertion("tq_pace", "at", paceColumns...)
	readPace   = &bulk{
		columns:  paceColumns[:2],
		postgres: "SELECT t.grp, t.at FROM tq_pace AS t JOIN " + from(paceColumns[:2]) + " ON t.queue = v.queue AND t.name = v.name",
		sqlite:   "SELECT grp, at FROM tq_pace WHERE queue = $1 AND name IN (SELECT value FROM json_each($2))",
		list:     true,
	}
	parkedColumns = []column{{"queue", "text"}, {"limited", "text"}, {"n", "bigint"}}
	// readParked reads the first so many of each group.
	readParked = &bulk{
		columns: parkedColumns,
		postgres: "SELECT p.* FROM " + from(parkedColumns) + " CROSS JOIN LATERAL (SELECT " + recordNames +
			" FROM tq_task WHERE queue = v.queue AND state = 4 AND limited = v.limited ORDER BY class, due, id LIMIT v.n FOR UPDATE SKIP LOCKED) AS p",
		sqlite: "SELECT " + recordNames + " FROM tq_task WHERE queue = $1 AND state = 4 AND limited = $2 ORDER BY class, due, id LIMIT $3",
	}
	// leftParked finds the groups that have some.
	leftParked = &bulk{
		columns:  parkedColumns[:2],
		postgres: "SELECT v.limited FROM " + from(parkedColumns[:2]) + " WHERE EXISTS (SELECT 1 FROM tq_task AS t WHERE t.queue = v.queue AND t.state = 4 AND t.limited = v.limited)",
		sqlite:   "SELECT limited FROM tq_task WHERE queue = $1 AND state = 4 AND limited = $2 LIMIT 1",
	}
)

const (
	limitsOf     = "coalesce((SELECT limits FROM tq_pattern WHERE queue = $1), '')"
	heldText     = "SELECT limited, count(*) FROM tq_task WHERE queue = $1 AND state = 3 AND limited <> '' GROUP BY limited"
	wakesWhere   = "SELECT queue, name FROM tq_pace WHERE queue = $1 AND wakes = $2 AND at <= $3 ORDER BY at LIMIT 1000 {skip}"
	takeWakes    = "DELETE FROM tq_pace WHERE (queue, name) IN (" + wakesWhere + ") RETURNING wakes, grp"
	nextWakeText = "SELECT at FROM tq_pace WHERE queue = $1 AND wakes = 1 ORDER BY at LIMIT 1"
)

var staleText = "SELECT " + recordNames + " FROM tq_task WHERE queue = $1 AND state = 4 AND limited < $2 ORDER BY limited, class, due, id LIMIT $3 {skip}"

// park has claims not see a task until there is room in its group.
func (r *record) park(s *limit.Set, group string) {
	r.parked, r.limited = true, s.Prefix()+group
}

// leaves notes that a task leaves the state which it has. The end of its lease gives a place back.
func (s *step) leaves(r *record) {
	if r.State == taskqueue.StateRunning && r.limited != "" {
		s.freed = append(s.freed, wake{"p" + strconv.FormatInt(r.Token, 10), r.limited, 0})
	}
	r.parked, r.limited = false, ""
}

// leave is the query that leaves wakes. No two steps leave one of the same name, so none waits for another.
func (s *step) leave(wakes []wake) query {
	q := query{bulk: insertPace}
	for _, w := range wakes {
		q.rows = append(q.rows, []any{s.queue, w.name, w.group, int64(1), w.at})
	}
	return q
}

// A keyLimits is what the limits of keys and types allow a claim.
type keyLimits struct {
	*limit.Set
	text    string // as they are stored
	now     float64
	running map[string]int     // leases, by group
	fullAt  map[string]float64 // when the rate of a group is full again
	spent   map[string]bool    // whose rate this claim has used
	open    map[string]bool    // groups that may have parked tasks and room, when the claim is done
	wakes   map[string]float64 // when a rate allows the next of a group
	stale   bool               // there may be more parked tasks of another version
	next    float64            // the first wake after this claim; 0: there is none
}

// read reads the limits; nil if there never were any.
func (c *claiming) readKeyLimits(text string) error {
	set, err := limit.Parse(text)
	if err == nil && set != nil {
		c.keys = &keyLimits{
			Set: set, text: text, running: map[string]int{}, fullAt: map[string]float64{},
			spent: map[string]bool{}, open: map[string]bool{}, wakes: map[string]float64{},
		}
	}
	return err
}

// any reports whether there are limits by now.
func (k *keyLimits) any() bool { return k != nil && len(k.Limits) > 0 }

// countHeld is the query of the leases of each group.
func (k *keyLimits) countHeld(queue string) query {
	if !k.any() {
		return query{}
	}
	return eachRow(heldText, []any{queue}, each2(func(group string, n int) { k.running[group] = n }))
}

// bringBack has parked tasks wait at their places again: those of another version, and the first of
// each group that has a wake, as many as there is room for.
func (c *claiming) bringBack() error {
	k := c.keys
	if k == nil {
		return nil
	}
	k.now = float64(max(c.limits.at, c.now.steady))
	var back []*record
	groups := map[string]bool{}
	for _, w := range c.freed {
		groups[w.group] = true
	}
	c.freed = nil
	taken := each2(func(wakes int64, group string) {
		if wakes == 1 {
			groups[group] = true
		}
	})
	text := ""
	// Leases are counted behind the wakes: one that ends later leaves another wake.
	err := c.t.run(
		eachRow(staleText, []any{c.queue, k.Prefix(), int64(taskqueue.MaxBatch)}, records(&back)),
		eachRow(takeWakes, []any{c.queue, int64(1), k.now}, taken),
		eachRow(takeWakes, []any{c.queue, int64(0), k.now}, taken), // rates that are full again
		k.countHeld(c.queue),
		row("SELECT "+limitsOf, []any{c.queue}, &text))
	if err != nil {
		return err
	}
	if text != k.text {
		return errAgain // one of the wakes may be of a group that this claim does not know
	}
	k.stale = len(back) == taskqueue.MaxBatch
	rows, err := c.askRoom(groups, taskqueue.MaxBatch-len(back))
	if err != nil {
		return err
	}
	if err := c.t.run(query{bulk: readParked, rows: rows, each: records(&back)}); err != nil {
		return err
	}
	return c.broughtBack(back, groups)
}

// askRoom returns how many tasks are to come back of each group, up to most in all.
func (c *claiming) askRoom(groups map[string]bool, most int) (rows [][]any, err error) {
	k := c.keys
	if err := c.readRates(groups); err != nil {
		return nil, err
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		l := k.Group(group)
		if l == nil {
			delete(groups, group) // what is parked of it is of another version
			continue
		}
		if n, _ := limit.Room(l, k.running[group], k.fullAt[group], k.now); min(n, most) > 0 {
			n = min(n, most)
			most -= n
			rows = append(rows, []any{c.queue, k.Prefix() + group, int64(n)})
		}
	}
	return rows, nil
}

// broughtBack writes the tasks that come back, and finds out which groups have more.
func (c *claiming) broughtBack(back []*record, groups map[string]bool) error {
	for _, r := range back {
		c.leaves(r)
		c.due.add(r)
	}
	c.lookAgain()
	left := query{bulk: leftParked, each: each1(func(limited string) {
		c.keys.open[limited[len(c.keys.Prefix()):]] = true
	})}
	for group := range groups {
		left.rows = append(left.rows, []any{c.queue, c.keys.Prefix() + group})
	}
	queries := append(save(back), left)
	if len(back) > 0 {
		queries = append(queries, c.lookHeads())
	}
	return c.t.run(queries...)
}

// admits reports whether the limits let a task begin now, which it does then. Else it is parked.
func (c *claiming) admits(r *record) bool {
	k := c.keys
	if !k.any() {
		return true
	}
	group, l := k.Of(r.LimitKey, r.Type)
	if l == nil {
		return true
	}
	n, next := limit.Room(l, k.running[group], k.fullAt[group], k.now)
	if n == 0 {
		r.park(k.Set, group)
		if next > 0 {
			k.wakes[group] = next
		}
		return false
	}
	k.running[group]++
	if l.Rate > 0 {
		k.fullAt[group], k.spent[group] = limit.Spent(l, k.fullAt[group], k.now), true
	}
	r.limited = group
	return true
}

// note is what is written down of the limits after a claim.
func (k *keyLimits) note(c *claiming) []query {
	if k == nil {
		return []query{c.leave(c.freed)}
	}
	for group := range k.open {
		switch n, next := limit.Room(k.Group(group), k.running[group], k.fullAt[group], k.now); {
		case n > 0:
			k.wakes[group] = k.now
		case next > 0:
			k.wakes[group] = next
		}
	}
	all := c.freed
	for group, at := range k.wakes {
		all = append(all, wake{"w" + group, group, at})
	}
	rates := query{bulk: insertPace}
	for group := range k.spent {
		rates.rows = append(rates.rows, []any{c.queue, "f" + group, group, int64(0), k.fullAt[group]})
	}
	return []query{rates, c.leave(all), row(nextWakeText, []any{c.queue}, &k.next)}
}

// readRates reads when the rates of groups are full again, as far as the claim does not know it.
func (c *claiming) readRates(groups map[string]bool) error {
	k := c.keys
	q := query{bulk: readPace, each: each2(func(group string, at float64) { k.fullAt[group] = at })}
	for group := range groups {
		if _, known := k.fullAt[group]; known {
			continue
		}
		if l := k.Group(group); l != nil && l.Rate > 0 {
			k.fullAt[group] = 0
			q.rows = append(q.rows, []any{c.queue, "f" + group})
		}
	}
	return c.t.run(q)
}

// knowRates is readRates for tasks that were found.
func (c *claiming) knowRates(found []*record) error {
	if !c.keys.any() {
		return nil
	}
	groups := map[string]bool{}
	for _, r := range found {
		if group, l := c.keys.Of(r.LimitKey, r.Type); l != nil {
			groups[group] = true
		}
	}
	return c.readRates(groups)
}
