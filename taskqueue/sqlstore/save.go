package sqlstore

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
)

var (
	changeTasks = change("tq_task", changing...)
	// beginTasks is changeTasks for tasks that one claim begins, and endRuns for runs that are done and of which
	// nothing else is to be told: most changes are one of the two.
	beginTasks = func() *bulk {
		b := changeAlso("tq_task", []string{"state = 3", "spare_end = 0", "worker = $7", "started = $8", "lease = $9", "lease_end = $10"},
			column{"queue", "text"}, column{"id", "text"}, column{"token", "bigint"}, column{"attempt", "bigint"}, column{"flags", "bigint"}, column{"limited", "text"})
		b.postgres += " RETURNING t.queue, t.id, t." + strings.Join(strings.Split(names(payloadColumns), ", "), ", t.")
		return b
	}()
	endRuns = changeAlso("tq_task", []string{"state = 5", "lease_end = 0", "settled = token", "ended = $4"},
		column{"queue", "text"}, column{"id", "text"}, column{"forget", "bigint"})
	changeError    = changeText("error")
	changeResult   = changeText("result")
	changeProgress = changeText("progress")
	uniqueColumns  = []column{{"queue", "text"}, {"unique_key", "text"}, {"id", "text"}}
	insertUnique   = insertion("tq_unique", uniqueColumns...)
	removeUnique   = removal("tq_unique", uniqueColumns...)
	removeTasks    = removal("tq_task", idColumns...)
	removePayloads = removal("tq_payload", idColumns...)
	readTasks      = reading("tq_task", recordNames, "")
	lockTasks      = reading("tq_task", recordNames, "ORDER BY t.id FOR UPDATE OF t")
	lendTasks      = reading("tq_task", recordNames, "ORDER BY t.id FOR NO KEY UPDATE OF t") // a child may be added meanwhile
	readPayloads   = reading("{payload}", "queue, id, "+names(payloadColumns), "")
)

func changeText(name string) *bulk {
	return change("{payload}", column{"queue", "text"}, column{"id", "text"}, column{name, "bytea"})
}

// save returns what writes records that have changed, each of them once. Those that are
// begun are written by saveBegun, which comes first.
func save(all []*record) []query {
	var tasks, errors, results, progress, freed, loose [][]any
	for _, r := range all {
		if !r.begun {
			tasks = append(tasks, r.changingRow())
		}
		text := func(of texts, rows *[][]any, b []byte) {
			if r.texts&of != 0 {
				*rows = append(*rows, []any{r.Queue, r.ID, bytes(b)})
			}
		}
		text(errorText, &errors, []byte(r.LastError))
		text(resultText, &results, r.Result)
		text(progressText, &progress, r.Progress)
		if r.held && !r.has(holds) {
			freed = append(freed, []any{r.Queue, r.UniqueKey, r.ID})
		}
		if r.waited && r.State != taskqueue.StateWaiting {
			loose = append(loose, []any{r.Queue, r.ID})
		}
		r.texts, r.held, r.waited, r.begun = 0, r.has(holds), r.State == taskqueue.StateWaiting, false
	}
	slices.SortFunc(freed, func(a, b []any) int { return cmp.Compare(a[1].(string), b[1].(string)) })
	return []query{in(changeTasks, tasks), in(changeError, errors), in(changeResult, results), in(changeProgress, progress), in(removeUnique, freed), in(removeEdges, loose)}
}

// remove returns what deletes records.
func (s *Store) remove(all []*record) []query {
	var keys, freed, loose [][]any
	for _, r := range all {
		keys = append(keys, []any{r.Queue, r.ID})
		if r.waited {
			loose = append(loose, []any{r.Queue, r.ID})
		}
		if r.held {
			freed = append(freed, []any{r.Queue, r.UniqueKey, r.ID})
		}
	}
	queries := []query{in(removeTasks, keys), in(removeUnique, freed), in(removeEdges, loose)}
	if !s.postgres {
		queries = append(queries, in(removePayloads, keys))
	}
	return queries
}

// load is the query that reads the tasks of ids into a map, and locks them if told.
func load(b *bulk, queue string, ids []string, into map[string]*record) query {
	q := query{bulk: b}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if taskqueue.CheckName("ID", id) == nil { // else no task has it, and PostgreSQL takes no such text
			q.rows = append(q.rows, []any{queue, id})
		}
	}
	q.each = eachRecord(func(r *record) { into[r.ID] = r })
	return q
}

// saveBegun is what writes tasks that a claim has begun. On PostgreSQL it reads what stands apart from the records, too.
func (c *claiming) saveBegun() query {
	q := query{bulk: beginTasks}
	of := map[string]*record{}
	for _, r := range c.tasks {
		if r.begun {
			of[r.ID] = r
			q.rows = append(q.rows, []any{r.Queue, r.ID, r.Token, int64(r.Attempt), int64(r.flags), r.limited})
			q.args = []any{r.Worker, micros(r.StartedAt), r.lease, r.leaseEnd}
		}
	}
	if c.s.postgres {
		q.each = intoPayloads(of, nil)
	}
	return q
}

// loadPayloads is the query that reads what stands apart from records into them. It calls
// found with each.
func loadPayloads(all []*record, found func(r *record)) query {
	of := make(map[string]*record, len(all))
	q := query{bulk: readPayloads}
	for _, r := range all {
		q.rows = append(q.rows, []any{r.Queue, r.ID})
		of[r.ID] = r
	}
	q.each = intoPayloads(of, found)
	return q
}

// intoPayloads scans rows of readPayloads into records.
func intoPayloads(of map[string]*record, found func(r *record)) func(scanner) error {
	return func(scan scanner) error {
		var queue, id string
		var payload, more, failure, result, progress []byte
		if err := scan(&queue, &id, &payload, &more, &failure, &result, &progress); err != nil {
			return err
		}
		r := of[id]
		if found != nil {
			found(r)
		}
		return r.scanPayload(payload, more, failure, result, progress)
	}
}

// holder is the query of the task that holds a unique key.
func holder(queue, key string, into *string) query {
	return row("SELECT id FROM tq_unique WHERE queue = $1 AND unique_key = $2", []any{queue, key}, into)
}

// hold has r hold its unique key. It returns the task that holds it if that is another one.
func (s *step) hold(r *record) (other string, err error) {
	held := false
	q := in(insertUnique, [][]any{{r.Queue, r.UniqueKey, r.ID}})
	q.added = func(int) { held = true }
	if err := s.t.run(q); err != nil {
		return "", err
	}
	if !held {
		if err := s.t.run(holder(r.Queue, r.UniqueKey, &other)); err != nil {
			return "", err
		}
		switch other {
		case "": // the holder has ended since
			return "", errAgain
		case r.ID:
		default:
			return other, nil
		}
	}
	r.set(holds, true)
	r.held = true
	return "", nil
}

// counters are the columns of counts, in their order.
var counters = []taskqueue.Counter{
	taskqueue.CountAdded, taskqueue.CountDuplicate, taskqueue.CountClaimed, taskqueue.CountDone, taskqueue.CountFailed, taskqueue.CountCrashed,
	taskqueue.CountReleased, taskqueue.CountUnhandled, taskqueue.CountDead, taskqueue.CountCancelled, taskqueue.CountExpired, taskqueue.CountTrimmed,
}

func counterList(each func(name string) string) (list string) {
	for _, c := range counters {
		list += ", " + each(string(c))
	}
	return list
}

// Every process adds what it counts to rows of its own, so nobody waits for another. seen
// makes the row one of a worker that has called; see step.
var (
	noteText = "INSERT INTO tq_worker (queue, worker, nonce, token, least, sleeps, last_seen, noted" + counterList(func(n string) string { return n }) +
		") VALUES ($1, $2, $3, $4, $5, 0, " + places(6, len(counters)+2) + ") ON CONFLICT (queue, worker) DO UPDATE SET " +
		"last_seen = CASE WHEN excluded.last_seen > 0 THEN excluded.last_seen ELSE tq_worker.last_seen END, noted = excluded.noted, least = CASE WHEN excluded.least > 0 AND " +
		"(tq_worker.least = 0 OR excluded.least < tq_worker.least) THEN excluded.least ELSE tq_worker.least END" + addedUp
	claimText = noteText + ", nonce = excluded.nonce, token = excluded.token"
	addedUp   = counterList(func(n string) string { return n + " = tq_worker." + n + " + excluded." + n })
)

// note is the query that adds what a step has counted to a row of its process. seen: a worker
// has called.
func (s *step) note(slot string, seen bool) query {
	at := int64(0)
	if seen {
		at = s.now.steady
	} else if !slices.ContainsFunc(counters, func(c taskqueue.Counter) bool { return s.counts[c] != 0 }) {
		return query{}
	}
	return s.noteRow(noteText, slot, []byte{}, 0, s.least, at)
}

// noteRow is the query that makes the row of a process or a worker, or adds to it what a step has counted.
func (s *step) noteRow(text, slot string, nonce []byte, token, least, seen int64) query {
	args := []any{s.queue, slot, nonce, token, least, seen, s.now.steady}
	for _, c := range counters {
		args = append(args, s.counts[c])
	}
	return statement(text, args...)
}

// foldOthers adds up what transactions of users have counted, and now and then what processes have that have ended.
func (c *claiming) foldOthers() error {
	var queue query
	if c.deltas != 0 {
		queue = statement(newQueueText, c.queue, "")
	}
	if !c.s.fronts.folds(c.queue) && c.deltas == 0 {
		return nil
	}
	return c.t.run(queue, c.fold("w:"+c.r.Worker))
}

// foldText takes rows away that only have counts: those of transactions of users, and of
// processes and workers that have not called for an hour.
var foldText = "DELETE FROM tq_worker WHERE (queue, worker) IN (SELECT queue, worker FROM tq_worker WHERE queue = $1 AND " +
	"(worker >= 'd:' AND worker < 'd;' OR noted < $2) AND worker <> $3 LIMIT 1000 {skip}) RETURNING sleeps" + counterList(func(n string) string { return n })

// fold adds the counts of such rows to those of this step.
func (s *step) fold(besides string) query {
	const hour = 3_600_000_000
	return eachRow(foldText, []any{s.queue, s.now.steady - hour, besides}, func(scan scanner) error {
		counts := make([]int64, len(counters))
		into := []any{new(int64)}
		for i := range counts {
			into = append(into, &counts[i])
		}
		err := scan(into...)
		for i, c := range counters {
			s.count(c, counts[i])
		}
		return err
	})
}
