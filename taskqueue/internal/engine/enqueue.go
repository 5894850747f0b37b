package engine

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Enqueue is a method of taskqueue.Store.
func (e *Engine) Enqueue(ctx context.Context, name string, tasks []taskqueue.NewTask) (results []taskqueue.Result, err error) {
	if err := taskqueue.CheckTasks(tasks); err != nil {
		return nil, err
	}
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		results = q.enqueue(tx, now, tasks)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// enqueue adds tasks in their order: a unique key that one of them holds is held for
// those behind it.
func (q *queue) enqueue(tx Tx, now time.Time, tasks []taskqueue.NewTask) []taskqueue.Result {
	results := make([]taskqueue.Result, len(tasks))
	for i := range tasks {
		results[i] = q.add(tx, now, tasks[i].Task)
	}
	return results
}

func (q *queue) add(tx Tx, now time.Time, t taskqueue.Task) taskqueue.Result {
	t.Queue = q.name
	if tx.Get(taskKey(q.name, t.ID)) != nil {
		return taskqueue.Result{Verdict: taskqueue.Exists, ID: t.ID}
	}
	if t.UniqueKey != "" {
		if holder := q.holder(tx, t.UniqueKey); holder != "" {
			q.count(taskqueue.CountDuplicate, 1)
			return taskqueue.Result{Verdict: taskqueue.Duplicate, ID: holder}
		}
	}
	r := &record{Info: taskqueue.Info{Task: t, State: taskqueue.StateScheduled, EnqueuedAt: stored(now)}, HoldsKey: t.UniqueKey != ""}
	r.DueAt = dueIn(now, t.Delay)
	if !t.RunAt.IsZero() {
		r.DueAt = dueIn(t.RunAt.Add(-time.Microsecond), time.Microsecond)
	}
	q.insert(tx, r)
	q.count(taskqueue.CountAdded, 1)
	return taskqueue.Result{Verdict: taskqueue.Added, ID: t.ID}
}

// holder returns the id of the task that holds a unique key, "" if none does. What
// is noted of a task whose record is lost does not count.
func (q *queue) holder(tx Tx, k string) string {
	id := string(tx.Get(uniqueKey(q.name, k)))
	if id == "" {
		return ""
	}
	if r, err := load(tx, q.name, id); err != nil || r == nil || !r.HoldsKey || r.UniqueKey != k {
		return ""
	}
	return id
}

// stored is t in the precision that is stored.
func stored(t time.Time) time.Time { return time.UnixMicro(int64(micros(t))).UTC() }

// dueIn is d after now in the precision that is stored: rounded up, so that nothing
// is early, but for what is due now.
func dueIn(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return stored(now)
	}
	return stored(now.Add(d + time.Microsecond - 1))
}
