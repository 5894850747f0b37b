package engine

import (
	"bytes"
	"context"
	"encoding/hex"
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

// maxCounted is how many tasks that are due Stats counts; then it stops.
const maxCounted = 10_000

// Stats is a method of taskqueue.Store.
func (e *Engine) Stats(ctx context.Context, name string) (s taskqueue.Stats, err error) {
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		s = taskqueue.Stats{Queue: name, Settings: q.meta.Settings, States: map[taskqueue.State]int64{}, Counts: map[taskqueue.Counter]int64{}}
		for c, n := range q.meta.Counts {
			s.Counts[c] = n
		}
		for st, n := range q.meta.States {
			s.States[st] = n
		}
		counted := 0
		for class := range taskqueue.Priorities {
			scan(tx, classKey(name, class), func(rest, v []byte) bool {
				late := now.Sub(fromMicros(rest))
				if late < 0 || counted == maxCounted {
					return false
				}
				counted++
				s.Latest = max(s.Latest, late)
				s.States[taskqueue.StateReady]++
				if len(v) > 0 {
					s.States[taskqueue.StateRetrying]--
				} else {
					s.States[taskqueue.StateScheduled]--
				}
				return true
			})
		}
		return nil
	})
	return s, err
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
		if holder := tx.Get(uniqueKey(q.name, r.UniqueKey)); r.UniqueKey != "" && holder != nil {
			return false, &taskqueue.DuplicateError{UniqueKey: r.UniqueKey, Holder: string(holder)}
		}
		q.change(tx, r, func(r *record) {
			r.Failures, r.Crashes, r.Releases, r.CancelRequested, r.Reaped = 0, 0, 0, false, false
			r.EndedAt, r.HoldsKey = time.Time{}, r.UniqueKey != ""
			q.wait(r, taskqueue.StateScheduled, now, 0)
		})
	case act == taskqueue.ActDelete && r.State != taskqueue.StateRunning:
		q.remove(tx, r)
	default:
		return false, nil
	}
	return true, nil
}

// List is a method of taskqueue.Store.
func (e *Engine) List(ctx context.Context, name string, req taskqueue.ListRequest) (page taskqueue.Page, err error) {
	after, err := hex.DecodeString(req.Cursor)
	if err != nil {
		return page, &taskqueue.InvalidError{What: "cursor", Why: "it is not one that List has returned"}
	}
	most := min(max(req.Max, 0), taskqueue.MaxBatch)
	if most == 0 {
		most = 100
	}
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		prefix, idAt := indexOf(name, req.State)
		var last []byte // behind the prefix, of the task that was looked at last
		seen, size := 0, 0
		scanFrom(tx, prefix, after, req.Reverse, func(rest []byte) bool {
			if seen == taskqueue.MaxBatch || len(page.Tasks) == most || size >= taskqueue.MaxBatchBytes {
				page.Cursor = hex.EncodeToString(last)
				return false
			}
			seen++
			last = slices.Clone(rest)
			var r *record
			if r, err = load(tx, name, string(rest[idAt:])); r == nil {
				return err == nil
			}
			if i := q.look(r, now); i.State == req.State {
				page.Tasks = append(page.Tasks, i)
				size += len(i.Payload) + len(i.Result) + len(i.Progress)
			}
			return true
		})
		return err
	})
	return page, err
}

// scanFrom calls f with what follows prefix in each key that begins with it, from the
// one behind after on, in the order of the keys or in the inverse order. No after: from
// the first.
func scanFrom(tx Tx, prefix, after []byte, reverse bool, f func(rest []byte) bool) {
	within := func(k, _ []byte) bool { return bytes.HasPrefix(k, prefix) && f(k[len(prefix):]) }
	from := slices.Concat(prefix, after)
	switch {
	case !reverse && len(after) > 0:
		tx.Scan(append(from, 0), within)
	case !reverse:
		tx.Scan(from, within)
	case len(after) == 0:
		from[len(from)-1]++ // the least key behind all those of the prefix, whose last byte is small
		fallthrough
	default:
		tx.ScanBack(from, within)
	}
}

// indexOf returns the prefix of the index in which tasks of a state are, and how
// many bytes stand before the id behind it.
func indexOf(queue string, s taskqueue.State) (prefix []byte, idAt int) {
	switch {
	case s == taskqueue.StateRunning:
		return key(keyRunning, queue), 0
	case s.Ended():
		return endedPrefix(queue, s), 8
	default:
		return key(keyDue, queue), 9
	}
}

// Purge is a method of taskqueue.Store.
func (e *Engine) Purge(ctx context.Context, name string, s taskqueue.State) (n int, err error) {
	if s == taskqueue.StateRunning {
		return 0, &taskqueue.InvalidError{What: "state", Why: "running tasks cannot be deleted: cancel them first"}
	}
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		prefix, idAt := indexOf(name, s)
		var all []*record
		scan(tx, prefix, func(rest, _ []byte) bool {
			r, _ := load(tx, name, string(rest[idAt:]))
			if r != nil && r.info(now).State == s {
				all = append(all, r)
			}
			return len(all) < taskqueue.MaxBatch
		})
		for _, r := range all {
			q.remove(tx, r)
		}
		n = len(all)
		return nil
	})
	return n, err
}

// Configure is a method of taskqueue.Store.
func (e *Engine) Configure(ctx context.Context, name string, f func(*taskqueue.Settings)) error {
	err := e.do(ctx, name, func(_ Tx, q *queue, _ time.Time) error {
		f(&q.meta.Settings)
		q.dirty, q.sooner = true, true
		return nil
	})
	return err
}

// Tick is a method of taskqueue.Store.
func (e *Engine) Tick(ctx context.Context, t taskqueue.Tick) (added bool, err error) {
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
