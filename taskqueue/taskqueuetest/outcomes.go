package taskqueuetest

import (
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func (m *model) extend(ref store.Ref, r store.ExtendRequest, before, after time.Time) store.ExtendResult {
	t := m.tasks[ref.ID]
	if t == nil || t.state != taskqueue.StateRunning || t.token != ref.Token {
		return store.Lost
	}
	t.lend(r.Lease, before, after)
	if p, given := r.Progress[ref.ID]; given {
		t.progress = string(p)
	}
	if t.cancel {
		return store.CancelRequested
	}
	return store.Extended
}

func (m *model) settle(o store.Outcome, before, after time.Time) store.SettleResult {
	t := m.tasks[o.ID]
	switch {
	case t == nil:
		return store.Gone
	case t.token != o.Token:
		return store.Stale
	case t.settled == o.Token:
		return t.isSettled()
	case t.state != taskqueue.StateRunning && !t.reaped:
		return store.Stale
	}
	revived := t.state.Ended()
	if t.reaped {
		t.reaped = false
		t.crashes--
		m.counts[taskqueue.CountCrashed]--
		if revived {
			m.counts[map[taskqueue.State]taskqueue.Counter{taskqueue.StateDead: taskqueue.CountDead, taskqueue.StateCancelled: taskqueue.CountCancelled}[t.state]]--
		}
	}
	t.settled = o.Token
	m.ends(t, o, before, after)
	if revived && t.waits() && t.task.UniqueKey != "" && t.task.Until == taskqueue.End {
		if m.holder(t.task.UniqueKey) != "" {
			m.over(t, taskqueue.StateDead, taskqueue.CountDead)
		} else {
			t.holds = true
		}
	}
	return t.isSettled()
}

// isSettled is what is said of a run that is settled.
func (t *modelTask) isSettled() store.SettleResult {
	if t.state == taskqueue.StateCancelled && t.cancel {
		return store.Overruled
	}
	return store.Settled
}

// ends is what an outcome makes of a task.
func (m *model) ends(t *modelTask, o store.Outcome, before, after time.Time) {
	if t.cancel && o.Kind != store.Succeeded {
		m.over(t, taskqueue.StateCancelled, taskqueue.CountCancelled)
		return
	}
	switch o.Kind {
	case store.Succeeded:
		m.over(t, taskqueue.StateDone, taskqueue.CountDone)
	case store.Failed, store.Buried:
		t.failures++
		m.counts[taskqueue.CountFailed]++
		if o.Kind == store.Failed {
			t.releases = 0
		}
		if o.Kind == store.Buried || t.failures >= t.task.MaxFailures {
			m.over(t, taskqueue.StateDead, taskqueue.CountDead)
			return
		}
		t.state = taskqueue.StateRetrying
		t.due(before, after, o.After)
	default:
		t.attempt--
		t.releases++
		if o.Kind == store.Snoozed {
			t.releases = 0
		}
		m.counts[taskqueue.CountReleased]++
		if o.Kind == store.Unhandled {
			m.counts[taskqueue.CountUnhandled]++
		}
		t.lasts = t.lasts || o.Kind == store.Snoozed
		t.state = taskqueue.StateScheduled
		if t.failures > 0 {
			t.state = taskqueue.StateRetrying
		}
		t.due(before, after, o.After)
	}
}
