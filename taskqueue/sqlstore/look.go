package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
)

// endsOf are what a claim looks at beside what waits, headsOf that and when the first of each class is due.
var (
	endsOf = []string{
		"coalesce((SELECT lease_end FROM tq_task WHERE queue = $1 AND state = 3 ORDER BY lease_end LIMIT 1), 0)",
		"coalesce((SELECT forget FROM tq_task WHERE queue = $1 AND forget > 0 ORDER BY forget LIMIT 1), 0)",
		"coalesce((SELECT 1 FROM tq_worker WHERE queue = $1 AND worker >= 'd:' AND worker < 'd;' LIMIT 1), 0)",
		hasReleases,
	}
	headsOf = func() []string {
		all := slices.Clone(endsOf)
		for i := range taskqueue.Priorities {
			all = append(all, fmt.Sprintf("coalesce((SELECT due FROM tq_task WHERE queue = $1 AND class = %d AND state < 3 AND due >= $%d ORDER BY due LIMIT 1), -1)", i, i+2))
		}
		return all
	}()
	headsText = "SELECT " + strings.Join(headsOf, ", ")
	// A queue that is not there yet has a row all the same.
	queueText = "SELECT %s, coalesce(q.settings, ''), coalesce(q.last_token, 0), coalesce(q.boot, ''), " + limitsOf +
		", s.last, s.least FROM (" + sightText + ") AS s LEFT JOIN tq_queue AS q ON q.queue = $1"
	lookText = fmt.Sprintf(queueText, strings.Join(headsOf, ", "))
	// lookAheadText is the look of a claim that takes what is due with it.
	lookAheadText = fmt.Sprintf(queueText, strings.Join(endsOf, ", "))
)

// lookHeads is the query of what comes first in each order: when the first lease ends, when the
// first task is forgotten, and when the first of each class is due.
func (c *claiming) lookHeads() query {
	args, into := c.headsAsked()
	return row(headsText, args, into...)
}

func (c *claiming) headsAsked() (args, into []any) {
	args = []any{c.queue}
	into = []any{&c.firstEnd, &c.firstForget, &c.deltas, &c.releases}
	for i := range c.heads {
		args, into = append(args, c.front[i]), append(into, &c.heads[i])
	}
	return args, into
}

// look reads all that a claim has to know before it does anything.
func (c *claiming) look() error {
	front := c.s.fronts.look(c.queue)
	c.front, c.lowered = front.due, front.lowered
	var settings, keys string
	of := []any{&settings, &c.lastToken, &c.boot, &keys, &c.seen.last, &c.seen.least}
	args, into := c.headsAsked()
	queries := []query{{clock: &c.now},
		row("SELECT nonce, token FROM tq_worker WHERE queue = $1 AND worker = $2 {lock}", []any{c.queue, "w:" + c.r.Worker}, &c.nonce, &c.base)}
	if c.ahead = nil; c.s.postgres && front.busy {
		c.ahead = &ahead{want: min(max(c.r.Max, 0), taskqueue.MaxBatch)}
		// The tokens are drawn when the tasks are locked: else another could claim and settle one of them between the two,
		// and the later claim would have the smaller token.
		queries = append(queries, row(lookAheadText, args[:1], append(slices.Clone(into[:len(endsOf)]), of...)...), c.pickAhead(), draw(&c.ahead.base))
	} else {
		queries = append(queries, row(lookText, args, append(into, of...)...))
	}
	err := c.t.run(queries...)
	c.stirs = c.firstEnd > 0 && c.firstEnd <= c.now.steady || c.releases != 0
	var broken error
	c.settings, broken = readSettings(settings)
	return errors.Join(err, broken, c.readKeyLimits(keys))
}
