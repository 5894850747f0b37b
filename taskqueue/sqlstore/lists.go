package sqlstore

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
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

// A finding is up to most tasks in a state, as one step may look for them, and the cursor of what comes next.
type finding struct {
	state   taskqueue.State
	reverse bool
	most    int
	found   []*record
	next    string
}

// look finds the tasks behind a place.
func (f *finding) look(t tx, queue string, after place, now moment) error {
	seen, bytes, last := 0, 0, place{}
	f.found, f.next = nil, ""
	visit := func(r *record, at place) bool {
		if seen == taskqueue.MaxBatch || len(f.found) == f.most || bytes >= taskqueue.MaxBatchBytes {
			f.next = last.cursor()
			return false
		}
		seen++
		last = at
		if r.info(now).State == f.state {
			f.found, bytes = append(f.found, r), bytes+r.weight()
		}
		return true
	}
	return walk(t, queue, spans(f.state), after, f.reverse, now.wall, taskqueue.MaxBatch+1, visit)
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
	f := &finding{state: req.State, reverse: req.Reverse, most: min(max(req.Max, 0), taskqueue.MaxBatch)}
	if f.most == 0 {
		f.most = 100
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		var now moment
		if err := t.run(query{clock: &now}); err != nil {
			return err
		}
		if err := f.look(t, queue, after, now); err != nil {
			return err
		}
		if err := t.end(loadPayloads(f.found, nil)); err != nil {
			return err
		}
		page = taskqueue.Page{Cursor: f.next}
		for _, r := range f.found {
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
	f := &finding{state: state, most: taskqueue.MaxBatch}
	var st *step
	err = s.db.transact(ctx, writes, func(t tx) error {
		st = newStep(t, queue)
		if err := t.run(query{clock: &st.now}); err != nil {
			return err
		}
		if err := f.look(t, queue, after, st.now); err != nil {
			return err
		}
		if n, err = st.purge(s, f.found, state); err != nil {
			return err
		}
		return s.finish(st, "act", false)
	})
	if err != nil {
		return 0, "", err
	}
	s.written(st)
	return n, f.next, nil
}

// purge deletes those of some tasks that are still in a state when they are locked.
func (s *step) purge(store *Store, found []*record, state taskqueue.State) (n int, err error) {
	ids, locked := make([]string, len(found)), map[string]*record{}
	for i, r := range found {
		ids[i] = r.ID
	}
	if err := s.t.run(load(lockTasks, s.queue, ids, locked)); err != nil {
		return 0, err
	}
	maps.DeleteFunc(locked, func(_ string, r *record) bool { return r.info(s.now).State != state })
	return len(locked), s.forgotten(store, slices.Collect(maps.Values(locked))...)
}
