package sqlstore

import (
	"maps"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/after"
)

// A task that waits for others, its parents, is a child of each: tq_edge has a row for that. Rows are
// added with the child; only who has the row of the child locked deletes them.
//
// A task that ends tells its children in the same step. No child can be added meanwhile: whoever does
// so has its parents locked. tq_release has the tasks that have told some of their children only; later
// claims go on.
const (
	// maxEdges is how many children a step tells at most; with one that is cancelled all that it waits
	// for count. maxDepth is how many generations are cancelled by a step at most.
	maxEdges = taskqueue.MaxBatch
	maxDepth = 16
)

var (
	edgeColumns    = []column{{"parent", "text"}, {"child", "text"}, {"queue", "text"}, {"on_failed", "text"}}
	releaseColumns = []column{{"queue", "text"}, {"parent", "text"}, {"state", "bigint"}}
	insertEdges    = insertion("tq_edge", edgeColumns...)
	removeEdges    = removal("tq_edge", column{"queue", "text"}, column{"child", "text"})
	removeEdge     = func() *bulk {
		b := removal("tq_edge", edgeColumns[:3]...)
		b.postgres += " RETURNING t.parent, t.child"
		return b
	}()
	readDone       = readEdges("parent, child, on_failed", "parent", "LIMIT 1000")
	readFailed     = readEdges("parent, child, on_failed", "parent", "AND on_failed < 'wait' LIMIT 1000")
	countEdges     = readEdges("child, count(*)", "child", "GROUP BY child")
	lockChildren   = reading("tq_task", recordNames, "ORDER BY t.id FOR UPDATE OF t SKIP LOCKED")
	lockParents    = reading("tq_task", "id, state", "ORDER BY t.id FOR KEY SHARE OF t")
	readStates     = reading("tq_task", "id, state", "")
	removeReleases = removal("tq_release", releaseColumns[:2]...)
	// haveChildren finds those tasks that have children, however many each has.
	haveChildren = &bulk{
		columns:  idColumns,
		postgres: "SELECT v.id FROM " + from(idColumns) + " WHERE EXISTS (SELECT FROM tq_edge AS e WHERE e.queue = v.queue AND e.parent = v.id)",
		sqlite:   "SELECT value FROM json_each($2) WHERE EXISTS (SELECT 1 FROM tq_edge WHERE queue = $1 AND parent = value)",
		list:     true,
	}
	insertReleases = upsertion("tq_release", "state", releaseColumns...)
)

// A claim looks at 100 rows of tq_release.
const (
	releasesText = "SELECT parent, state FROM tq_release WHERE queue = $1 LIMIT 100 {skip}"
	hasReleases  = "coalesce((SELECT 1 FROM tq_release WHERE queue = $1 LIMIT 1), 0)"
)

// readEdges reads the rows that have some ids in a column.
func readEdges(selected, by, tail string) *bulk {
	return &bulk{
		columns:  idColumns,
		postgres: "SELECT " + selected + " FROM tq_edge JOIN " + from(idColumns) + " USING (queue) WHERE " + by + " = id " + tail,
		sqlite:   "SELECT " + selected + " FROM tq_edge WHERE queue = $1 AND " + by + " IN (SELECT value FROM json_each($2)) " + tail,
		list:     true,
	}
}

// ends are how tasks have ended, by their ids; see deleted.
type ends map[string]taskqueue.State

// deleted is how a task has ended that is there no more and had not ended before.
const deleted taskqueue.State = 0

// An edge is a row of tq_edge.
type edge struct {
	parent, child string
	onFailed      taskqueue.OnFailed
}

// holdsBack reports whether a child is not to run, its parent having ended so.
func holdsBack(parent taskqueue.State, onFailed taskqueue.OnFailed) bool {
	return parent != taskqueue.StateDone && onFailed != taskqueue.OnFailedRun
}

// takeEnds returns the tasks that have ended since it was asked last.
func (s *step) takeEnds() ends {
	all := ends{}
	for _, r := range s.ended {
		if r.State.Ended() { // else an outcome has come late, and it waits again
			all[r.ID] = r.State
		}
	}
	s.ended = nil
	return all
}

// release tells the children of tasks that have ended. Those that wait for nothing any more are in the database then.
func (s *step) release(all ends) error {
	left, later := maxEdges, ends{}
	for depth := 0; len(all) > 0; depth++ {
		if left <= 0 || depth == maxDepth {
			maps.Copy(later, all)
			break
		}
		if err := s.releaseOnce(all, later, &left); err != nil {
			return err
		}
		all = s.takeEnds()
	}
	if len(later) == 0 {
		return nil
	}
	q, parents := releaseLater(s.queue, later), map[string]bool{}
	if err := s.t.run(parentsOf(q.rows, parents)); err != nil {
		return err
	}
	q.rows = slices.DeleteFunc(q.rows, func(row []any) bool { return !parents[row[1].(string)] })
	s.sooner = s.sooner || len(q.rows) > 0 // somebody is to claim, and with that to go on
	return s.t.run(q)
}

// releaseLater is what has later claims tell the children of tasks.
func releaseLater(queue string, all ends) query {
	var rows [][]any
	for _, id := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, []any{queue, id, int64(all[id])})
	}
	return in(insertReleases, rows)
}

// releaseOnce is release of one generation. later gets those tasks that have told some of their
// children only: there are too many, or others have a child locked.
func (s *step) releaseOnce(all, later ends, left *int) error {
	edges, err := s.edgesOf(all, later)
	if err != nil || len(edges) == 0 {
		return err
	}
	children, waits, err := s.lockChildrenOf(edges)
	if err != nil {
		return err
	}
	told := in(removeEdge, nil)
	var of []edge
	for _, e := range edges {
		if children[e.child] == nil || *left <= 0 {
			later[e.parent] = all[e.parent]
			continue
		}
		if *left--; holdsBack(all[e.parent], e.onFailed) {
			*left -= int(waits[e.child])
		}
		of, told.rows = append(of, e), append(told.rows, []any{e.parent, e.child, s.queue})
	}
	var changed []*record
	told.added = func(at int) {
		e := of[at]
		s.released++
		switch child := children[e.child]; {
		case child.State != taskqueue.StateWaiting:
			return
		case holdsBack(all[e.parent], e.onFailed):
			child.fail(after.Skipped(e.parent, all[e.parent]))
			s.cancelled(child)
			changed = append(changed, child)
		default:
			if waits[e.child]--; waits[e.child] == 0 {
				s.goOn(child)
				changed = append(changed, child)
			}
		}
	}
	if err := s.t.run(told); err != nil {
		return err
	}
	return s.t.run(save(changed)...)
}

// goOn has a task wait for its time only, which is now if it has passed.
func (s *step) goOn(r *record) {
	r.State = taskqueue.StateScheduled
	if r.due = max(r.due, s.now.wall); r.has(atOnce) {
		r.due = s.now.wall
	}
	s.due.add(r)
}

// edgesOf reads children of tasks that have ended, those that matter to them.
func (s *step) edgesOf(all, later ends) (edges []edge, err error) {
	done, failed := query{bulk: readDone}, query{bulk: readFailed}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		q := &failed
		if all[id] == taskqueue.StateDone {
			q = &done
		}
		q.rows = append(q.rows, []any{s.queue, id})
	}
	for _, q := range []*query{&done, &failed} {
		before := 0
		q.each = each3(func(parent, child, onFailed string) {
			edges = append(edges, edge{parent, child, taskqueue.OnFailed(onFailed)})
			if before++; before == maxEdges { // there may be more
				for _, row := range q.rows {
					id := row[1].(string)
					later[id] = all[id]
				}
			}
		})
	}
	return edges, s.t.run(done, failed)
}

// lockChildrenOf locks the children that nobody else has locked, and counts what each waits for.
func (s *step) lockChildrenOf(edges []edge) (children map[string]*record, waits map[string]int64, err error) {
	children, waits = map[string]*record{}, map[string]int64{}
	ids := make([]string, len(edges))
	for i, e := range edges {
		ids[i] = e.child
	}
	lock := load(lockChildren, s.queue, ids, children)
	count := query{bulk: countEdges, rows: lock.rows, each: each2(func(id string, n int64) { waits[id] = n })}
	return children, waits, s.t.run(lock, count) // the count is of a moment when they are locked
}

// releaseAll tells the children of what this claim has ended, and of some for which steps before it have
// not done so. The claim finds those that are free by that.
func (c *claiming) releaseAll() error {
	all := c.takeEnds()
	if c.releases != 0 {
		var gone [][]any
		err := c.t.run(eachRow(releasesText, []any{c.queue}, each2(func(id string, state int64) {
			all[id], gone = readState(state), append(gone, []any{c.queue, id})
		})))
		if err == nil {
			err = c.t.run(in(removeReleases, gone))
		}
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	if err := c.release(all); err != nil {
		return err
	}
	c.moved = c.lookAgain() || c.moved
	return c.t.run(c.lookHeads())
}

// acted writes a task that an act of administration has changed, and tells its children if it has ended.
func (s *step) acted(r *record) error {
	if err := s.t.run(save([]*record{r})...); err != nil {
		return err
	}
	return s.release(s.takeEnds())
}

// forgotten deletes tasks, and tells the children of those that had not ended.
func (s *step) forgotten(store *Store, all ...*record) error {
	if err := s.t.run(store.remove(all)...); err != nil {
		return err
	}
	gone := ends{}
	for _, r := range all {
		if !r.State.Ended() {
			gone[r.ID] = deleted
		}
	}
	return s.release(gone)
}

// parentsOf is the query of those tasks that have children.
func parentsOf(rows [][]any, into map[string]bool) query {
	return query{bulk: haveChildren, rows: rows, each: each1(func(id string) { into[id] = true })}
}
