package sqlstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// An adding adds tasks to one queue in one transaction.
type adding struct {
	s     *Store
	step  *step
	tasks []*taskqueue.Task
	// foreign: in a transaction of a user. When that is done this process is not told otherwise
	// than others are.
	foreign bool
	brief   bool                       // it waits for locks of others for a short time only
	heads   dues                       // as they were before
	states  map[string]taskqueue.State // of those that tasks are to run after; see lookParents
}

func (s *Store) adding(st *step, tasks []*taskqueue.Task) *adding {
	return &adding{s: s, step: st, tasks: tasks, heads: noDues()}
}

// headText finds nothing in a serializable transaction, which is one of a user: all that read what others
// add would be in each other's way.
const headText = "SELECT due FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due >= $3{alone} ORDER BY due LIMIT 1"

// newQueueText makes the row of a queue. All who add to a new queue would wait for a transaction of
// a user that has done so, so on PostgreSQL the claim does it that counts what such transactions have added.
const newQueueText = "INSERT INTO tq_queue VALUES ($1, '{}', 0, $2, 0) ON CONFLICT DO NOTHING"

// look is what has to be known first: the time, and what is due first in each class that is
// added to.
func (a *adding) look() []query {
	queries := []query{{clock: &a.step.now, brief: a.brief}}
	if _, known := a.s.enqueues.known.Load(a.step.queue); !known && !(a.foreign && a.s.postgres) {
		queries = append(queries, statement(newQueueText, a.step.queue, ""))
	}
	front := a.s.fronts.of(a.step.queue)
	var classes [taskqueue.Priorities]bool
	for _, t := range a.tasks {
		if class := classOf(t.Priority); !classes[class] {
			classes[class] = true
			queries = append(queries, row(headText, []any{a.step.queue, int64(class), front[class]}, &a.heads[class]))
		}
	}
	return queries
}

var (
	insertTasks    = insertion("tq_task", recordColumns...)
	insertWhole    = insertion("tq_task", append(append([]column{}, recordColumns...), payloadColumns...)...)
	insertPayloads = insertion("tq_payload", append([]column{{"queue", "text"}, {"id", "text"}}, payloadColumns...)...)
)

// add adds the tasks as if one after the other: a unique key that one of them holds is held for
// those behind it. Tasks whose names are different go together, the first of each name first of all.
func (a *adding) add() ([]taskqueue.Result, error) {
	if err := a.lookParents(); err != nil {
		return nil, err
	}
	results := make([]taskqueue.Result, len(a.tasks))
	for _, places := range a.rounds() {
		tasks := make([]*taskqueue.Task, len(places))
		for i, at := range places {
			tasks[i] = a.tasks[at]
		}
		some, err := a.addDifferent(tasks)
		if err != nil {
			return nil, err
		}
		for i, at := range places {
			results[at] = some[i]
		}
	}
	return results, a.link(results)
}

// rounds are the places of the tasks in the order in which they are added: each behind those before
// it that have its id or its unique key. In a round they are in the order of their ids, so that two
// transactions which add the same cannot wait for each other.
func (a *adding) rounds() (rounds [][]int) {
	ids, keys := map[string]int{}, map[string]int{} // the first round that is free for a name
	for i, t := range a.tasks {
		n := ids[t.ID]
		if t.UniqueKey != "" {
			n = max(n, keys[t.UniqueKey])
			keys[t.UniqueKey] = n + 1
		}
		if ids[t.ID] = n + 1; n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], i)
	}
	for _, places := range rounds {
		slices.SortFunc(places, func(i, j int) int { return cmp.Compare(a.tasks[i].ID, a.tasks[j].ID) })
	}
	return rounds
}

// addDifferent adds tasks of different ids and unique keys.
func (a *adding) addDifferent(tasks []*taskqueue.Task) ([]taskqueue.Result, error) {
	results := make([]taskqueue.Result, len(tasks))
	var keyed []int
	for i, t := range tasks {
		results[i] = taskqueue.Result{Verdict: taskqueue.Exists, ID: t.ID}
		if t.UniqueKey != "" {
			keyed = append(keyed, i)
		}
	}
	refused, err := a.takeKeys(tasks, keyed, results)
	if err != nil {
		return nil, err
	}
	var at []int
	var records []*record
	for i, t := range tasks {
		if !refused[i] {
			at, records = append(at, i), append(records, a.record(t))
		}
	}
	err = a.insert(records, func(i int) {
		results[at[i]].Verdict = taskqueue.Added
		a.step.count(taskqueue.CountAdded, 1)
		a.step.due.add(records[i])
	})
	if err != nil || len(keyed) == 0 {
		return results, err
	}
	return results, a.giveKeysBack(tasks, keyed, refused, results)
}

// takeKeys has tasks hold their unique keys, in the order of the keys: two transactions that
// do so cannot wait for each other. It tells which tasks are refused: their ids are known, or
// others hold their keys.
func (a *adding) takeKeys(tasks []*taskqueue.Task, keyed []int, results []taskqueue.Result) (refused map[int]bool, err error) {
	if len(keyed) == 0 {
		return nil, nil
	}
	refused, known := map[int]bool{}, map[string]*record{}
	ids := make([]string, len(keyed))
	for i, at := range keyed {
		ids[i] = tasks[at].ID
	}
	if err := a.step.t.run(load(readTasks, a.step.queue, ids, known)); err != nil {
		return nil, err
	}
	var rows [][]any
	var of []int
	slices.SortFunc(keyed, func(i, j int) int { return cmp.Compare(tasks[i].UniqueKey, tasks[j].UniqueKey) })
	for _, i := range keyed {
		if refused[i] = known[tasks[i].ID] != nil; !refused[i] {
			rows, of = append(rows, []any{a.step.queue, tasks[i].UniqueKey, tasks[i].ID}), append(of, i)
			refused[i] = true
		}
	}
	q := in(insertUnique, rows)
	q.added = func(at int) { refused[of[at]] = false }
	if err := a.step.t.run(q); err != nil {
		return nil, err
	}
	for _, i := range of {
		if !refused[i] {
			continue
		}
		id, err := a.holderOf(tasks[i])
		if err != nil {
			return nil, err
		}
		switch id {
		case tasks[i].ID: // added by a call beside this one
		case "":
			refused[i] = false
		default:
			results[i] = taskqueue.Result{Verdict: taskqueue.Duplicate, ID: id}
			a.step.count(taskqueue.CountDuplicate, 1)
		}
	}
	return refused, nil
}

// holderOf returns the task that holds the unique key of another one, which could not have it. If
// the holder has ended since all is tried again. In a transaction of a user only this is: it returns
// no holder if the task has the key by now.
func (a *adding) holderOf(t *taskqueue.Task) (id string, err error) {
	for held := false; ; {
		if err := a.step.t.run(holder(a.step.queue, t.UniqueKey, &id)); err != nil || id != "" {
			return id, err
		}
		if !a.foreign {
			return "", errAgain
		}
		q := in(insertUnique, [][]any{{a.step.queue, t.UniqueKey, t.ID}})
		q.added = func(int) { held = true }
		if err := a.step.t.run(q); err != nil || held {
			return "", err
		}
	}
}

// giveKeysBack frees the keys that were taken for tasks whose ids turned out to be known.
func (a *adding) giveKeysBack(tasks []*taskqueue.Task, keyed []int, refused map[int]bool, results []taskqueue.Result) error {
	var rows [][]any
	for _, i := range keyed {
		if !refused[i] && results[i].Verdict == taskqueue.Exists {
			rows = append(rows, []any{a.step.queue, tasks[i].UniqueKey, tasks[i].ID})
		}
	}
	return a.step.t.run(in(removeUnique, rows))
}

// record is a task as it is added.
func (a *adding) record(t *taskqueue.Task) *record {
	r := &record{Info: taskqueue.Info{Task: *t, State: taskqueue.StateScheduled, EnqueuedAt: time.UnixMicro(a.step.now.wall).UTC()}}
	r.Queue = a.step.queue
	r.due = dueIn(a.step.now.wall, t.Delay)
	if !t.RunAt.IsZero() {
		r.due = max(t.RunAt.Add(time.Microsecond-1).UnixMicro(), 0)
	}
	r.set(holds, t.UniqueKey != "")
	r.set(starts, t.Until == taskqueue.Start)
	r.set(atOnce, t.Delay <= 0 && t.RunAt.IsZero())
	r.size = int64(len(t.Payload))
	for k, v := range t.Headers {
		r.size += int64(len(k) + len(v))
	}
	for _, id := range t.After {
		r.size += int64(len(id))
	}
	if len(a.waitsFor(t)) > 0 {
		r.State = taskqueue.StateWaiting
	}
	return r
}

// insert adds records, and tells of each that was added.
func (a *adding) insert(records []*record, added func(i int)) error {
	tasks, payloads := make([][]any, len(records)), make([][]any, len(records))
	for i, r := range records {
		tasks[i] = append(r.changingRow(), r.lastingRow()...)
		payloads[i] = append([]any{r.Queue, r.ID}, r.payloadRow()...)
		if a.s.postgres {
			tasks[i] = append(tasks[i], payloads[i][2:]...)
		}
	}
	q := in(insertTasks, tasks)
	if a.s.postgres {
		q.bulk = insertWhole
		q.added = added
		return a.step.t.run(q)
	}
	var of [][]any
	q.added = func(i int) { added(i); of = append(of, payloads[i]) }
	if err := a.step.t.run(q); err != nil {
		return err
	}
	return a.step.t.run(in(insertPayloads, of))
}

// wakes reports whether something that was added is due before all that others know of.
func (a *adding) wakes() bool {
	for class, first := range a.step.due {
		if first >= 0 && (a.heads[class] < 0 || first < a.heads[class]) {
			return true
		}
	}
	return false
}

// tell is what tells others.
func (a *adding) tell() []query {
	if a.step.sooner = a.wakes(); a.step.sooner {
		return a.s.tellAs(a.step, a.foreign)
	}
	return nil
}
