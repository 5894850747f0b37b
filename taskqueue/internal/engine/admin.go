package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Get is a method of taskqueue.Store.
func (e *Engine) Get(ctx context.Context, name, id string) (info taskqueue.Info, err error) {
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		r, err := load(tx, name, id)
		if r == nil && err == nil {
			err = taskqueue.ErrNotFound
		}
		if err == nil {
			info = q.look(r, now)
		}
		return err
	})
	return info, err
}

// look returns what is known of r, with its lease.
func (q *queue) look(r *record, now time.Time) taskqueue.Info {
	i := r.info(now)
	if l := q.byID[r.ID]; l != nil {
		i.LeaseEnd = l.end
	}
	return i
}

// Queues is a method of taskqueue.Store.
func (e *Engine) Queues(ctx context.Context) (names []string, err error) {
	err = e.db.Do(ctx, func(Tx) error {
		for name, q := range e.queues {
			if q.stored {
				names = append(names, name)
			}
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// Act is a method of taskqueue.Store.
func (e *Engine) Act(ctx context.Context, name, id string, act taskqueue.Act) (done bool, err error) {
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		r, err := load(tx, name, id)
		if r == nil && err == nil {
			err = taskqueue.ErrNotFound
		}
		if err == nil {
			done, err = q.act(tx, now, r, act)
		}
		return err
	})
	return done, err
}

func (q *queue) act(tx Tx, now time.Time, r *record, act taskqueue.Act) (bool, error) {
	switch {
	case act == taskqueue.ActCancel && r.waits():
		q.change(tx, r, func(r *record) {
			r.Reaped = false
			q.over(r, taskqueue.StateCancelled, now)
			q.count(taskqueue.CountCancelled, 1)
		})
	case act == taskqueue.ActCancel && r.State == taskqueue.StateRunning:
		q.change(tx, r, func(r *record) { r.CancelRequested = true })
	case act == taskqueue.ActPromote && r.waits() && r.DueAt.After(now):
		q.change(tx, r, func(r *record) { r.DueAt = stored(now) })
	case act == taskqueue.ActRetry && (r.State == taskqueue.StateDead || r.State == taskqueue.StateCancelled):
		if holder := q.holder(tx, r.UniqueKey); r.UniqueKey != "" && holder != "" {
			return false, &taskqueue.DuplicateError{UniqueKey: r.UniqueKey, Holder: holder}
		}
		q.change(tx, r, func(r *record) {
			r.Failures, r.Crashes, r.Releases, r.CancelRequested, r.Reaped = 0, 0, 0, false, false
			r.EndedAt, r.HoldsKey, r.Lasts = time.Time{}, r.UniqueKey != "", true
			q.wait(r, taskqueue.StateScheduled, now, 0)
		})
	case act == taskqueue.ActDelete && r.State != taskqueue.StateRunning:
		q.remove(tx, r)
	default:
		return false, nil
	}
	return true, nil
}

// Configure is a method of taskqueue.Store. f is called with no lock held, so that it
// may use the store.
func (e *Engine) Configure(ctx context.Context, name string, f func(*taskqueue.Settings)) error {
	for done := false; !done; {
		var before taskqueue.Settings
		read := func(_ Tx, q *queue, _ time.Time) error { before = q.meta.Settings; return nil }
		if err := e.do(ctx, name, read); err != nil {
			return err
		}
		set := before
		f(&set)
		if err := taskqueue.CheckSettings(set); err != nil {
			return err
		}
		err := e.do(ctx, name, func(_ Tx, q *queue, _ time.Time) error {
			if done = q.meta.Settings == before; done {
				q.meta.Settings, q.dirty, q.sooner = set, true, true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Tick is a method of taskqueue.Store.
func (e *Engine) Tick(ctx context.Context, t taskqueue.Tick) (added bool, err error) {
	if err := taskqueue.CheckTick(t); err != nil {
		return false, err
	}
	err = e.do(ctx, t.Queue, func(tx Tx, q *queue, now time.Time) error {
		k := append(key(keyPeriodic, t.Queue), t.Name...)
		p := taskqueue.Periodic{Name: t.Name, Schedule: t.Schedule}
		if b := tx.Get(k); b != nil {
			if err := json.Unmarshal(b, &p); err != nil {
				return err
			}
		}
		if !p.Last.IsZero() && (!t.At.After(p.Last) || p.Schedule != t.Schedule) {
			return nil
		}
		p.Last = t.At
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		tx.Put(k, b)
		added = q.add(tx, now, t.Task.Task).Verdict == taskqueue.Added
		q.dirty = true
		return nil
	})
	return added, err
}

// Unschedule is a method of taskqueue.Store.
func (e *Engine) Unschedule(ctx context.Context, of, name string) (known bool, err error) {
	err = e.do(ctx, of, func(tx Tx, _ *queue, _ time.Time) error {
		k := append(key(keyPeriodic, of), name...)
		if known = tx.Get(k) != nil; known {
			tx.Delete(k)
		}
		return nil
	})
	return known, err
}

// Periodic is a method of taskqueue.Store.
func (e *Engine) Periodic(ctx context.Context, name string) (all []taskqueue.Periodic, err error) {
	err = e.do(ctx, name, func(tx Tx, _ *queue, _ time.Time) (failed error) {
		scan(tx, key(keyPeriodic, name), func(_, v []byte) bool {
			var p taskqueue.Periodic
			if failed = json.Unmarshal(v, &p); failed == nil {
				all = append(all, p)
			}
			return failed == nil
		})
		return failed
	})
	return all, err
}
