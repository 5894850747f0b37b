package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Get is a method of taskqueue.Store.
func (s *Store) Get(ctx context.Context, queue, id string) (info taskqueue.Info, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return info, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		var now moment
		found := map[string]*record{}
		if err := t.run(query{clock: &now}, load(readTasks, queue, []string{id}, found)); err != nil {
			return err
		}
		r := found[id]
		if r == nil {
			return taskqueue.ErrNotFound
		}
		if err := t.end(loadPayloads([]*record{r}, nil)); err != nil {
			return err
		}
		info = r.info(now)
		return nil
	})
	return info, err
}

// queuesText finds the queues, also those that only transactions of users have added to.
const queuesText = "SELECT queue FROM tq_queue UNION SELECT queue FROM tq_worker WHERE worker >= 'd:' AND worker < 'd;'"

// Queues is a method of taskqueue.Store.
func (s *Store) Queues(ctx context.Context) (names []string, err error) {
	err = s.db.transact(ctx, reads, func(t tx) error {
		names = nil
		return t.end(query{text: queuesText, each: func(scan func(...any) error) error {
			names = append(names, "")
			return scan(&names[len(names)-1])
		}})
	})
	slices.Sort(names)
	return names, err
}

// Act is a method of taskqueue.Store.
func (s *Store) Act(ctx context.Context, queue, id string, act taskqueue.Act) (done bool, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return false, err
	}
	var st *step
	var due [taskqueue.Priorities]int64
	err = s.db.transact(ctx, writes, func(t tx) error {
		st = newStep(t, queue)
		found := map[string]*record{}
		if err := t.run(query{clock: &st.now}, load(lockTasks, queue, []string{id}, found)); err != nil {
			return err
		}
		r := found[id]
		if r == nil {
			return taskqueue.ErrNotFound
		}
		if done, err = st.act(r, act); err != nil || !done {
			return err
		}
		if act == taskqueue.ActDelete {
			due, err = st.forgotten(s, r)
		} else {
			due, err = st.acted(r)
		}
		if err != nil {
			return err
		}
		var queries []query
		if st.sooner = st.sooner || anyWaits(due); st.sooner {
			queries = append(queries, s.tell(st)...)
		}
		return t.end(append(queries, st.note("p:"+s.client+"/act", false))...)
	})
	if err == nil && done {
		s.written(st, due)
	}
	return done, err
}

// act does one of the acts, and reports false if r is in no state for it.
func (s *step) act(r *record, act taskqueue.Act) (bool, error) {
	switch {
	case act == taskqueue.ActCancel && (r.waits() || r.State == taskqueue.StateWaiting):
		r.set(reaped, false)
		s.cancelled(r)
	case act == taskqueue.ActCancel && r.State == taskqueue.StateRunning:
		r.set(asked, true)
	case act == taskqueue.ActPromote && r.waits() && r.due > s.now.wall:
		r.due = s.now.wall
		r.set(atOnce, true)
	case act == taskqueue.ActPromote && r.State == taskqueue.StateWaiting:
		s.wait(r, taskqueue.StateScheduled, 0)
	case act == taskqueue.ActRetry && (r.State == taskqueue.StateDead || r.State == taskqueue.StateCancelled):
		if r.UniqueKey != "" {
			if other, err := s.hold(r); err != nil || other != "" {
				return false, errors.Join(err, duplicate(r.UniqueKey, other))
			}
		}
		r.Failures, r.Crashes, r.Releases = 0, 0, 0
		r.flags &^= asked | reaped | spared
		r.set(lasts, true)
		r.ended, r.forget = 0, 0
		s.wait(r, taskqueue.StateScheduled, 0)
	case act == taskqueue.ActDelete && r.State != taskqueue.StateRunning:
	default:
		return false, nil
	}
	return true, nil
}

func duplicate(key, holder string) error {
	if holder == "" {
		return nil
	}
	return &taskqueue.DuplicateError{UniqueKey: key, Holder: holder}
}

// limitedBy reports whether settings have a limit that a lease which is given back makes room
// in.
func limitedBy(settings string) (bool, error) {
	if settings == "" || settings == "{}" {
		return false, nil
	}
	var set taskqueue.Settings
	err := json.Unmarshal([]byte(settings), &set)
	return set.Concurrency > 0, err
}

// Configure is a method of taskqueue.Store. f is called outside of any transaction, so that it
// may use the store.
func (s *Store) Configure(ctx context.Context, queue string, f func(*taskqueue.Settings)) error {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return err
	}
	for {
		before := ""
		read := func(t tx) error {
			return t.run(row("SELECT settings FROM tq_queue WHERE queue = $1", []any{queue}, &before))
		}
		if err := s.db.transact(ctx, reads, read); err != nil {
			return err
		}
		var set taskqueue.Settings
		if before != "" {
			if err := json.Unmarshal([]byte(before), &set); err != nil {
				return err
			}
		}
		f(&set)
		if err := taskqueue.CheckSettings(set); err != nil {
			return err
		}
		after, err := json.Marshal(set)
		if err != nil {
			return err
		}
		if done, err := s.configure(ctx, queue, before, string(after)); done || err != nil {
			return err
		}
	}
}

// configure changes the settings, if they are still what they were before.
func (s *Store) configure(ctx context.Context, queue, before, after string) (bool, error) {
	var n int64
	err := s.db.transact(ctx, writes, func(t tx) error {
		n = 0
		st := newStep(t, queue)
		set := query{text: "UPDATE tq_queue SET settings = $3 WHERE queue = $1 AND settings = $2", args: []any{queue, before, after}, affected: &n}
		if before == "" {
			set = query{text: "INSERT INTO tq_queue VALUES ($1, $2, 0, '', 0) ON CONFLICT DO NOTHING", args: []any{queue, after}, affected: &n}
		}
		return t.end(append([]query{{clock: &st.now}, set}, s.tell(st)...)...)
	})
	if n > 0 && err == nil {
		s.hints.wake(queue)
	}
	return n > 0, err
}

// maxAhead is how far a tick may be ahead of the store: nobody else's would be taken until then.
const maxAhead = 15 * time.Minute
