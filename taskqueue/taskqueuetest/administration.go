package taskqueuetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

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
