package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
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
		return t.end(eachRow(queuesText, nil, each1(func(name string) { names = append(names, name) })))
	})
	slices.Sort(names)
	return names, err
}

// Act is a method of taskqueue.Store.
func (s *Store) Act(ctx context.Context, queue, id string, act store.Act) (done bool, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return false, err
	}
	var st *step
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
		if act == store.ActDelete {
			err = st.forgotten(s, r)
		} else {
			err = st.acted(r)
		}
		if err != nil {
			return err
		}
		return s.finish(st, "act", false)
	})
	if err == nil && done {
		s.written(st)
	}
	return done, err
}

// act does one of the acts, and reports false if r is in no state for it.
func (s *step) act(r *record, act store.Act) (bool, error) {
	switch {
	case act == store.ActCancel && (r.waits() || r.State == taskqueue.StateWaiting):
		r.set(reaped, false)
		s.cancelled(r)
	case act == store.ActCancel && r.State == taskqueue.StateRunning:
		r.set(asked, true)
	case act == store.ActPromote && r.waits() && r.due > s.now.wall:
		r.due = s.now.wall
		r.set(atOnce, true)
		s.due.add(r)
	case act == store.ActPromote && r.State == taskqueue.StateWaiting:
		s.wait(r, taskqueue.StateScheduled, 0)
	case act == store.ActRetry && (r.State == taskqueue.StateDead || r.State == taskqueue.StateCancelled):
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
	case act == store.ActDelete && r.State != taskqueue.StateRunning:
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

// readSettings reads the settings of a queue as they are stored.
func readSettings(text string) (set taskqueue.Settings, err error) {
	if text != "" && text != "{}" {
		err = json.Unmarshal([]byte(text), &set)
	}
	return set, err
}

// Configure is a method of taskqueue.Store.
func (s *Store) Configure(ctx context.Context, queue string, before, after taskqueue.Settings) (done bool, err error) {
	text, err := json.Marshal(after)
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckSettings(after), err); err != nil {
		return false, err
	}
	err = s.db.transact(ctx, writes, func(t tx) error {
		st, known := newStep(t, queue), ""
		err := t.run(query{clock: &st.now}, statement(newQueueText, queue, ""),
			row("SELECT settings FROM tq_queue WHERE queue = $1 {lock}", []any{queue}, &known))
		set, broken := readSettings(known)
		if done = set == before; err != nil || broken != nil || !done {
			return errors.Join(err, broken)
		}
		return t.end(append(s.tell(st), statement("UPDATE tq_queue SET settings = $2 WHERE queue = $1", queue, string(text)))...)
	})
	if done = done && err == nil; done {
		s.hints.wake(queue)
	}
	return done, err
}

// maxAhead is how far a tick may be ahead of the store: nobody else's would be taken until then.
const maxAhead = 15 * time.Minute
