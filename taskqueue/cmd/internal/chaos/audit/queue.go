package audit

import (
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
)

// stored: what the store finds wrong with itself.
func (a *audit) stored() {
	for _, text := range a.Stored {
		a.fault("R1, R2, R5: %s", text)
	}
	for _, key := range a.Left {
		a.fault("all tasks were deleted, and %s is left over", key)
	}
}

// sums: the counts are those of the tasks. No task of a run is deleted.
func (a *audit) sums() {
	states := map[taskqueue.State]int64{}
	for _, t := range a.Tasks {
		states[t.State]++
	}
	for s := taskqueue.StateScheduled; s <= taskqueue.StateWaiting; s++ {
		if a.Stats.States[s] != states[s] {
			a.fault("R1: %d tasks are %v, and %d are listed", a.Stats.States[s], s, states[s])
		}
	}
	for c, n := range map[taskqueue.Counter]int64{
		taskqueue.CountAdded:     int64(len(a.Tasks)),
		taskqueue.CountDone:      states[taskqueue.StateDone],
		taskqueue.CountDead:      states[taskqueue.StateDead],
		taskqueue.CountCancelled: states[taskqueue.StateCancelled],
	} {
		if a.Stats.Counts[c] != n {
			a.fault("R11: the count of %s is %d, and there are %d such tasks", c, a.Stats.Counts[c], n)
		}
	}
}

// processes: what processes have found themselves, and that nothing runs when Work
// has returned.
func (a *audit) processes() {
	for by, all := range a.procs {
		returned := int64(0)
		for _, e := range all {
			switch {
			case e.Kind == ledger.Fault:
				a.fault("%s: %s", by, e.Text)
			case e.Kind == ledger.Returned:
				returned = e.At
			case returned != 0 && e.Kind != ledger.Added && e.Kind != ledger.Trying && e.Kind != ledger.Refused:
				a.fault("%s: %s of task %s after Work had returned", by, e.Kind, e.ID)
			}
		}
	}
}

// keys: a unique key is held until its task has ended, and no longer.
func (a *audit) keys() {
	holders := map[string][]*life{}
	for _, id := range a.ids {
		l := a.lives[id]
		if l.task == nil || l.task.UniqueKey == "" || l.shaken {
			continue
		}
		for _, e := range l.of[ledger.Added] {
			if e.Verdict == taskqueue.Duplicate {
				a.duplicate(l, e)
			}
		}
		if l.info != nil && len(l.of[ledger.Added]) > 0 {
			holders[l.task.UniqueKey] = append(holders[l.task.UniqueKey], l)
		}
	}
	for key, all := range holders {
		for _, x := range all {
			for _, y := range all {
				if begin, end := x.held(); x != y && begin < y.of[ledger.Trying][0].At && y.of[ledger.Added][0].At < end {
					a.fault("R5: the unique key %q was held by %s when %s was added", key, x.id, y.id)
				}
			}
		}
	}
}

// duplicate looks at the answer that another task holds the key.
func (a *audit) duplicate(l *life, e *ledger.Entry) {
	holder := a.lives[e.Holder]
	switch {
	case holder == nil || holder.task == nil || holder.task.UniqueKey != l.task.UniqueKey:
		a.fault("R5: %s holds the unique key of %s, says the store, and never had it", e.Holder, l.id)
	case !holder.shaken && slices.ContainsFunc(holder.of[ledger.Settled], func(s *ledger.Entry) bool {
		return final(s) && isSettled(s) && s.At < e.Began
	}):
		a.fault("R5: %s held the unique key of %s after it had ended", e.Holder, l.id)
	}
}

// held returns a time in which the task has certainly held its key: from when it was
// acknowledged until the outcome that ends it was sent first. 0, 0: there is none.
func (l *life) held() (begin, end int64) {
	if plan.Of(l.task) != plan.OK || len(l.of[ledger.Cancelling]) > 0 || l.of[ledger.Added][0].Verdict == taskqueue.Duplicate {
		return 0, 0
	}
	for _, s := range l.of[ledger.Settling] {
		if final(s) {
			return l.of[ledger.Added][0].At, s.At
		}
	}
	return 0, 0
}
