package sqlstore

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// A span is a part of a queue in an order of an index: tasks of one class, or in one state.
type span struct {
	where string // with $1 for the queue, $2 for a number and $3 for the time
	order string // the column that tasks are sorted by, before their id; empty: by the id alone
	is    int64  // $2
}

// spans are where the tasks in a state are, in their order. StateScheduled has retries in them, too.
func spans(s taskqueue.State) (all []span) {
	switch {
	case s == taskqueue.StateRunning:
		return []span{{where: "state = 3 AND CAST($2 AS BIGINT) >= 0 AND CAST($3 AS BIGINT) >= 0"}}
	case s == taskqueue.StateRetrying:
		return []span{{where: "state = 2 AND CAST($2 AS BIGINT) >= 0 AND due > $3", order: "due"}}
	case s.Ended() || s == taskqueue.StateWaiting:
		return []span{{where: "state > 4 AND state = $2 AND CAST($3 AS BIGINT) >= 0", order: "ended", is: int64(s)}}
	}
	due := "class = $2 AND state < 3 AND due <= $3"
	if s == taskqueue.StateScheduled {
		due = "class = $2 AND state < 3 AND due > $3"
	}
	for class := range taskqueue.Priorities {
		all = append(all, span{where: due, order: "due", is: int64(class)})
	}
	if s == taskqueue.StateReady {
		all = append(all, span{where: "state = 4 AND CAST($2 AS BIGINT) >= 0 AND CAST($3 AS BIGINT) >= 0", order: "due"})
	}
	return all
}

// A place is where a page has ended.
type place struct {
	Span int
	At   int64
	ID   string
}

func readCursor(text string) (p place, err error) {
	if text == "" {
		return place{Span: -1}, nil
	}
	b, err := hex.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		err = &taskqueue.InvalidError{What: "cursor", Why: "it is not one that was returned for this state and order"}
	}
	return p, err
}

func (p place) cursor() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has no field that cannot be written
	}
	return hex.EncodeToString(b)
}

// text returns the statement that reads the span, behind a place if told. SQLite may choose
// no other index than that of the order.
func (s span) text(behind, reverse bool) string {
	direction, compare := "", ">"
	if reverse {
		direction, compare = " DESC", "<"
	}
	order := "id" + direction
	if s.order != "" {
		order = s.order + direction + ", " + order
	}
	where := s.where
	if behind && s.order != "" {
		where += " AND (" + s.order + ", id) " + compare + " ($5, $6)"
	} else if behind {
		where += " AND CAST($5 AS BIGINT) >= 0 AND id " + compare + " $6"
	}
	return "SELECT " + recordNames + " FROM tq_task WHERE queue = $1 AND " + where + " ORDER BY " + order + " LIMIT $4"
}

// at returns where r is in a span.
func (s span) at(i int, r *record) place {
	p := place{Span: i, ID: r.ID}
	switch s.order {
	case "due":
		p.At = r.due
	case "ended":
		p.At = r.ended
	}
	return p
}

// walk calls f with the tasks of spans behind a place, in their order or in the inverse, until
// it returns false. It looks at most tasks at most, a few hundred at a time.
func walk(t tx, queue string, all []span, after place, reverse bool, now int64, most int, f func(r *record, at place) bool) error {
	for n := range all {
		i := n
		if reverse {
			i = len(all) - 1 - n
		}
		if after.Span >= 0 && (!reverse && i < after.Span || reverse && i > after.Span) {
			continue
		}
		for goesOn := true; goesOn && most > 0; {
			want := min(most, 200)
			behind := i == after.Span
			args := []any{queue, all[i].is, now, int64(want)}
			if behind {
				args = append(args, after.At, after.ID)
			}
			var found []*record
			if err := t.run(eachRow(all[i].text(behind, reverse), args, records(&found))); err != nil {
				return err
			}
			for _, r := range found {
				most--
				after = all[i].at(i, r)
				if !f(r, after) {
					return nil
				}
			}
			goesOn = len(found) == want
		}
	}
	return nil
}

// List is a method of taskqueue.Store.
func (s *Store) List(ctx context.Context, queue string, req taskqueue.ListRequest) (page taskqueue.Page, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return page, err
	}
	after, err := readCursor(req.Cursor)
	if err != nil {
		return page, err
	}
	most := min(max(req.Max, 0), taskqueue.MaxBatch)
	if most == 0 {
		most = 100
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		page = taskqueue.Page{}
		var now moment
		if err := t.run(query{clock: &now}); err != nil {
			return err
		}
		var found []*record
		seen, bytes, last := 0, 0, place{}
		err := walk(t, queue, spans(req.State), after, req.Reverse, now.wall, taskqueue.MaxBatch+1, func(r *record, at place) bool {
			if seen == taskqueue.MaxBatch || len(found) == most || bytes >= taskqueue.MaxBatchBytes {
				page.Cursor = last.cursor()
				return false
			}
			seen++
			last = at
			if r.info(now).State == req.State {
				found, bytes = append(found, r), bytes+r.weight()
			}
			return true
		})
		if err != nil {
			return err
		}
		if err := t.end(loadPayloads(found, nil)); err != nil {
			return err
		}
		for _, r := range found {
			page.Tasks = append(page.Tasks, r.info(now))
		}
		return nil
	})
	return page, err
}

// Purge is a method of taskqueue.Store.
func (s *Store) Purge(ctx context.Context, queue string, state taskqueue.State, from string) (n int, next string, err error) {
	if state == taskqueue.StateRunning {
		return 0, "", &taskqueue.InvalidError{What: "state", Why: "running tasks cannot be deleted: cancel them first"}
	}
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return 0, "", err
	}
	after, err := readCursor(from)
	if err != nil {
		return 0, "", err
	}
	var st *step
	err = s.db.transact(ctx, writes, func(t tx) error {
		st = newStep(t, queue)
		n, next = 0, ""
		if err := t.run(query{clock: &st.now}); err != nil {
			return err
		}
		now := st.now
		ids, err := purged(t, queue, state, after, now, &next)
		if err != nil {
			return err
		}
		found := map[string]*record{}
		if err := t.run(load(lockTasks, queue, ids, found)); err != nil {
			return err
		}
		var gone []*record
		for _, r := range found {
			if r.info(now).State == state { // else somebody was faster
				gone = append(gone, r)
			}
		}
		n = len(gone)
		if err := st.forgotten(s, gone...); err != nil {
			return err
		}
		return s.finish(st, "act", false)
	})
	if err == nil {
		s.written(st)
	}
	return n, next, err
}

// purged returns the ids that one step of a purge may delete, and where the next goes on.
func purged(t tx, queue string, state taskqueue.State, after place, now moment, next *string) (ids []string, err error) {
	seen, bytes, last := 0, 0, place{}
	err = walk(t, queue, spans(state), after, false, now.wall, taskqueue.MaxBatch+1, func(r *record, at place) bool {
		if seen == taskqueue.MaxBatch || bytes >= taskqueue.MaxBatchBytes {
			*next = last.cursor()
			return false
		}
		seen++
		last = at
		if r.info(now).State == state {
			ids, bytes = append(ids, r.ID), bytes+r.weight()
		}
		return true
	})
	return ids, err
}

// Stats is a method of taskqueue.Store. It counts what the indexes have, and looks at no task: a fraction of a second
// for a million of them.
func (s *Store) Stats(ctx context.Context, queue string) (stats taskqueue.Stats, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return stats, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		var now moment
		settings, limits := "", ""
		stats = taskqueue.Stats{Queue: queue, States: map[taskqueue.State]int64{}, Counts: map[taskqueue.Counter]int64{}}
		if err := t.run(query{clock: &now}, row("SELECT settings, "+limitsOf+" FROM tq_queue WHERE queue = $1", []any{queue}, &settings, &limits)); err != nil {
			return err
		}
		set, err := limit.Parse(limits)
		if err != nil {
			return err
		}
		if stats.Settings, err = readSettings(settings); err != nil {
			return err
		}
		if set != nil && len(set.Limits) > 0 {
			stats.Limits = set.Limits
		}
		return countAll(t, &stats, now)
	})
	return stats, err
}

const (
	readyText  = "SELECT count(*) FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due <= $3"
	laterText  = "SELECT count(*) FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due > $3"
	oldestText = "SELECT due FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due <= $3 ORDER BY due LIMIT 1"
	endedText  = "SELECT state, count(*) FROM tq_task WHERE queue = $1 AND state > 4 GROUP BY state"
	parkedText = "SELECT count(*) FROM tq_task WHERE queue = $1 AND state = 4"
)

func countAll(t tx, stats *taskqueue.Stats, now moment) error {
	queue := stats.Queue
	var ready, later, retries, runs int64
	queries := []query{
		row("SELECT count(*) FROM tq_task WHERE queue = $1 AND state = 2 AND due > $2", []any{queue, now.wall}, &retries),
		row(runningText, []any{queue}, &runs),
		row(parkedText, []any{queue}, &stats.Limited),
		eachRow(endedText, []any{queue}, each2(func(state, n int64) { stats.States[readState(state)] = n })),
	}
	for class := range taskqueue.Priorities {
		args := []any{queue, int64(class), now.wall}
		add := func(text string, to *int64) {
			queries = append(queries, eachRow(text, args, each1(func(n int64) { *to += n })))
		}
		add(readyText, &ready)
		add(laterText, &later)
		queries = append(queries, eachRow(oldestText, args, each1(func(first int64) {
			stats.Latest = max(stats.Latest, timeOf(now.wall).Sub(timeOf(first)))
		})))
	}
	sums := make([]string, len(counters))
	counts := make([]int64, len(counters))
	into := make([]any, len(counters))
	for i, c := range counters {
		sums[i], into[i] = "CAST(coalesce(sum("+string(c)+"), 0) AS BIGINT)", &counts[i]
	}
	queries = append(queries, row("SELECT "+strings.Join(sums, ", ")+" FROM tq_worker WHERE queue = $1", []any{queue}, into...))
	if err := t.end(queries...); err != nil {
		return err
	}
	for i, c := range counters {
		if counts[i] != 0 {
			stats.Counts[c] = counts[i]
		}
	}
	stats.States[taskqueue.StateReady], stats.States[taskqueue.StateRunning] = ready+stats.Limited, runs
	stats.States[taskqueue.StateRetrying], stats.States[taskqueue.StateScheduled] = retries, later-retries
	return nil
}
