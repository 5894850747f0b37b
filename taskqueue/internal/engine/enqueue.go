package engine

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Enqueue is a method of taskqueue.Store.
func (e *Engine) Enqueue(ctx context.Context, name string, tasks []taskqueue.NewTask) (results []taskqueue.Result, err error) {
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		results, err = q.enqueue(tx, now, tasks)
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// enqueue adds tasks in their order: a unique key that one of them holds is held for
// those behind it.
func (q *queue) enqueue(tx Tx, now time.Time, tasks []taskqueue.NewTask) ([]taskqueue.Result, error) {
	if len(tasks) > taskqueue.MaxBatch {
		return nil, &taskqueue.InvalidError{What: "tasks", Why: "more than 1,000 in one call: split them"}
	}
	size := 0
	for i := range tasks {
		if size += len(tasks[i].Payload); size > taskqueue.MaxBatchBytes {
			return nil, &taskqueue.InvalidError{What: "tasks", Why: "more than 4 MiB of payloads in one call: split them"}
		}
	}
	results := make([]taskqueue.Result, len(tasks))
	for i := range tasks {
		results[i] = q.add(tx, now, tasks[i].Task)
	}
	return results, nil
}

func (q *queue) add(tx Tx, now time.Time, t taskqueue.Task) taskqueue.Result {
	t.Queue = q.name
	if tx.Get(taskKey(q.name, t.ID)) != nil {
		return taskqueue.Result{Verdict: taskqueue.Exists, ID: t.ID}
	}
	if t.UniqueKey != "" {
		if holder := tx.Get(uniqueKey(q.name, t.UniqueKey)); holder != nil {
			q.count(taskqueue.CountDuplicate, 1)
			return taskqueue.Result{Verdict: taskqueue.Duplicate, ID: string(holder)}
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
