package taskqueue

import (
	"errors"
	"time"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// The arguments of a store are checked by these functions, before the first write. They
// are for those who write a store: each is called with what the method of that name
// got, and returns an [*InvalidError] or nil.

// size is what a task counts for MaxBatchBytes.
func (t *Task) size() int { return len(t.Payload) + headersSize(t.Headers) + afterSize(t) }

// CheckTasks checks what Enqueue is given.
func CheckTasks(tasks []Task) error {
	if len(tasks) > MaxBatch {
		return invalid("tasks", "there are %d in one call, at most %d are allowed: split them", len(tasks), MaxBatch)
	}
	size, after := 0, 0
	for i := range tasks {
		if err := tasks[i].check(); err != nil {
			return err
		}
		if after += len(tasks[i].After); after > MaxBatch {
			return invalid("After", "the tasks of one call name more than %d others: split them", MaxBatch)
		}
		if size += tasks[i].size(); size > MaxBatchBytes {
			return invalid("tasks", "their payloads and headers have more than %d bytes in one call: split them", MaxBatchBytes)
		}
	}
	return nil
}

// CheckTick checks what Tick is given.
func CheckTick(t Tick) error {
	for _, name := range []struct{ what, is string }{{"Name", t.Name}, {"Schedule", t.Schedule}} {
		if err := CheckName(name.what, name.is); err != nil {
			return err
		}
	}
	if t.At.After(latestTime) || t.Defined.After(latestTime) {
		return invalid("At", "it is %v, of a schedule of %v: neither may be after the year %d", t.At, t.Defined, latestTime.Year())
	}
	if t.At.IsZero() {
		return nil
	}
	if len(t.Task.After) > 0 {
		return invalid("After", "a periodic task cannot wait for others: let its handler add those that do")
	}
	return CheckTasks([]Task{t.Task})
}

// check checks what every store depends on.
func (t *Task) check() error {
	if err := errors.Join(CheckName("Type", t.Type), CheckName("ID", t.ID)); err != nil {
		return err
	}
	if t.UniqueKey != "" {
		if err := CheckName("UniqueKey", t.UniqueKey); err != nil {
			return err
		}
	}
	return errors.Join(checkLimitKey(t.LimitKey), checkSizes(t, MaxBatchBytes), checkTimes(t), checkCounts(t), checkAfter(t))
}

// CheckClaim checks what Claim is given.
func CheckClaim(r store.ClaimRequest) error {
	if err := CheckName("Worker", r.Worker); err != nil {
		return err
	}
	return checkLease(r.Lease)
}

func checkLease(d time.Duration) error {
	if d <= 0 || d > MaxDelay {
		return invalid("Lease", "it is %v: it must be more than 0 and at most %v", d, MaxDelay)
	}
	return nil
}

// CheckExtend checks what Extend is given.
func CheckExtend(r store.ExtendRequest) error {
	if len(r.Refs) > MaxBatch {
		return invalid("Refs", "there are %d in one call, at most %d are allowed: split them", len(r.Refs), MaxBatch)
	}
	size := 0
	for _, p := range r.Progress {
		size += len(p)
	}
	if size > MaxBatchBytes {
		return invalid("Progress", "it has %d bytes in one call, at most %d are allowed: split it", size, MaxBatchBytes)
	}
	return checkLease(r.Lease)
}

// CheckOutcomes checks what Settle is given.
func CheckOutcomes(outcomes []store.Outcome) error {
	if len(outcomes) > MaxBatch {
		return invalid("outcomes", "there are %d in one call, at most %d are allowed: split them", len(outcomes), MaxBatch)
	}
	size := 0
	for i := range outcomes {
		o := &outcomes[i]
		if size += len(o.Error) + len(o.Result); size > MaxBatchBytes {
			return invalid("outcomes", "their results and errors have more than %d bytes in one call: split them", MaxBatchBytes)
		}
		if o.Kind < store.Succeeded || o.Kind > store.Unhandled {
			return invalid("Kind", "%d is no way in which a run ends", o.Kind)
		}
	}
	return nil
}
