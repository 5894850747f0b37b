package taskqueuetest

import (
	"errors"
	"fmt"
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
		t.lasts = t.lasts || o.Kind != store.Unhandled
		t.state = taskqueue.StateScheduled
		if t.failures > 0 {
			t.state = taskqueue.StateRetrying
		}
		t.due(before, after, o.After)
	}
}

func (m *model) act(id string, act store.Act, did bool, err error, before, after time.Time) error {
	defer m.release(before, after)
	t := m.tasks[id]
	if t == nil {
		if !errors.Is(err, taskqueue.ErrNotFound) {
			return fmt.Errorf("act on a task that there is not said %v %v", did, err)
		}
		return nil
	}
	var held *taskqueue.DuplicateError
	if errors.As(err, &held) {
		if holder := m.holder(t.task.UniqueKey); act != store.ActRetry || did || holder == "" || held.Holder != holder || held.UniqueKey != t.task.UniqueKey {
			return fmt.Errorf("act %d on %s said %w, the model has %q as the holder", act, id, err, holder)
		}
		return nil
	}
	if err != nil {
		return err
	}
	want := false
	switch {
	case act == store.ActCancel && (t.waits() || t.state == taskqueue.StateWaiting):
		want, t.reaped = true, false
		m.over(t, taskqueue.StateCancelled, taskqueue.CountCancelled)
	case act == store.ActCancel && t.state == taskqueue.StateRunning:
		want, t.cancel = true, true
	case act == store.ActPromote && t.state == taskqueue.StateWaiting:
		want, t.state, t.parents = true, taskqueue.StateScheduled, nil
		t.due(before, after, 0)
	case act == store.ActPromote && t.waits():
		want = t.dueLow.After(after)
		if !want && t.dueLow.After(before) {
			want = did // who knows
		}
		if want {
			t.due(before, after, 0)
		}
	case act == store.ActRetry && (t.state == taskqueue.StateDead || t.state == taskqueue.StateCancelled):
		if t.task.UniqueKey != "" && m.holder(t.task.UniqueKey) != "" {
			return fmt.Errorf("retry of %s did not say that %s holds its key", id, m.holder(t.task.UniqueKey))
		}
		want = true
		t.failures, t.crashes, t.releases, t.cancel, t.reaped = 0, 0, 0, false, false
		t.holds, t.state, t.lasts = t.task.UniqueKey != "", taskqueue.StateScheduled, true
		t.due(before, after, 0)
	case act == store.ActDelete && t.state != taskqueue.StateRunning:
		want = true
		m.gone(id)
	}
	if did != want {
		return fmt.Errorf("act %d on %s said %v, the model %v", act, id, did, want)
	}
	return nil
}

// purge checks what is gone; all is what is left.
func (m *model) purge(s taskqueue.State, n int, all map[string]taskqueue.Info, before, after time.Time) error {
	for id, t := range m.tasks {
		_, left := all[id]
		may, must := t.state == s, t.state == s
		if t.waits() {
			mayBeDue, isDue := !t.dueLow.After(after), !t.dueHigh.After(before)
			if s == taskqueue.StateReady {
				may, must = mayBeDue, isDue
			} else {
				may, must = may && !isDue, must && !mayBeDue
			}
		}
		switch {
		case !left && !may:
			return fmt.Errorf("purge of what is %v has deleted %s, which is %v", s, id, t.state)
		case left && must:
			return fmt.Errorf("purge of what is %v has left %s", s, id)
		case !left:
			m.gone(id)
			n--
		}
	}
	m.release(before, after)
	if n != 0 {
		return fmt.Errorf("purge has deleted %d less than it said", n)
	}
	return nil
}
