package taskqueuetest

import (
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// A modelEnd is how a task has ended; 0: it was deleted before.
type modelEnd struct {
	id    string
	state taskqueue.State
}

func holdsBack(f taskqueue.OnFailed, s taskqueue.State) bool {
	return s != taskqueue.StateDone && f != taskqueue.OnFailedRun
}

// link has a task that is added wait for its parents.
func (m *model) link(t *modelTask) {
	t.parents = map[string]bool{}
	for _, id := range t.task.After {
		p := m.tasks[id]
		if p.state.Ended() && !holdsBack(t.task.OnFailed, p.state) {
			continue
		}
		t.parents[id], t.state = true, taskqueue.StateWaiting
		if p.state.Ended() {
			m.ended = append(m.ended, modelEnd{id, p.state})
		}
	}
}

// refuses reports whether one of the tasks is to wait for a task that is not there.
func (m *model) refuses(tasks []taskqueue.Task) bool {
	there, keys := map[string]bool{}, map[string]bool{}
	for id := range m.tasks {
		there[id] = true
	}
	for _, t := range tasks {
		if there[t.ID] {
			continue
		}
		if slices.ContainsFunc(t.After, func(id string) bool { return !there[id] }) {
			return true
		}
		if t.UniqueKey == "" || !keys[t.UniqueKey] && m.holder(t.UniqueKey) == "" {
			there[t.ID], keys[t.UniqueKey] = true, true
		}
	}
	return false
}

func refused(err error) bool {
	var wrong *taskqueue.InvalidError
	var held *taskqueue.DuplicateError
	return errors.As(err, &wrong) || errors.As(err, &held)
}

// gone deletes a task.
func (m *model) gone(id string) {
	if !m.tasks[id].state.Ended() {
		m.ended = append(m.ended, modelEnd{id, 0})
	}
	delete(m.tasks, id)
}

// release tells the tasks that wait what has ended, in a step between two times.
func (m *model) release(low, high time.Time) {
	for len(m.ended) > 0 {
		e := m.ended[0]
		m.ended = m.ended[1:]
		for _, t := range m.tasks {
			switch {
			case !t.parents[e.id]:
			case !holdsBack(t.task.OnFailed, e.state):
				if delete(t.parents, e.id); len(t.parents) == 0 {
					t.state = taskqueue.StateScheduled
					t.dueLow, t.dueHigh = later(t.dueLow, low), later(t.dueHigh, high)
				}
			case t.task.OnFailed != taskqueue.OnFailedWait:
				m.over(t, taskqueue.StateCancelled, taskqueue.CountCancelled)
				t.ended = low
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// after has a task wait for others, now and then.
func (p *program) after(t *taskqueue.Task) {
	if p.pick(3) > 0 {
		return
	}
	for range 1 + p.pick(2) {
		if id := p.id(); id != t.ID && !slices.Contains(t.After, id) {
			t.After = append(t.After, id)
		}
	}
	if len(t.After) > 0 {
		t.OnFailed = []taskqueue.OnFailed{taskqueue.OnFailedSkip, taskqueue.OnFailedRun, taskqueue.OnFailedWait}[p.pick(3)]
	}
}
