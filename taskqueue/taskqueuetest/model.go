package taskqueuetest

import (
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A model is what a store has to be like, without any thought of speed. It has no
// clock: a claim says when it was made, and of every other call it knows two times
// between which that was.
type model struct {
	tasks     map[string]*modelTask
	settings  taskqueue.Settings
	limits    map[taskqueue.Limit]taskqueue.Limit // by Key and Type alone
	fullAt    map[string]time.Time                // when the rate of a group is full again
	counts    map[taskqueue.Counter]int64
	ticks     map[string]taskqueue.Periodic
	claims    map[string][]store.Ref // of the last claim of each worker
	ended     []modelEnd             // of which the tasks that wait for them were not told yet
	lastToken int64
	// The allowance of the rate limit, and since when.
	allowance float64
	allowedAt time.Time
	// Between these the last call of a worker was made.
	stepLow, stepHigh time.Time
}

type modelTask struct {
	task            taskqueue.Task
	state           taskqueue.State // scheduled stands for ready, too
	dueLow, dueHigh time.Time
	ended           time.Time

	token, settled                       int64
	attempt, failures, crashes, releases int
	cancel, holds, reaped, lasts         bool
	progress                             string
	group                                string          // of the limit that it runs under
	parents                              map[string]bool // that it still waits for

	lease           time.Duration
	endLow, endHigh time.Time // of the lease
	gap             bool      // while it had the lease there was a gap which may count
	maySpared       bool      // the lease may have got its length once more
	spared          time.Time // when the lease was seen to last though it had run out
}

func newModel() *model {
	return &model{
		tasks: map[string]*modelTask{}, counts: map[taskqueue.Counter]int64{},
		limits: map[taskqueue.Limit]taskqueue.Limit{}, fullAt: map[string]time.Time{},
		ticks: map[string]taskqueue.Periodic{}, claims: map[string][]store.Ref{},
	}
}

func (t *modelTask) waits() bool {
	return t.state == taskqueue.StateScheduled || t.state == taskqueue.StateRetrying
}

func (t *modelTask) due(low, high time.Time, after time.Duration) {
	t.dueLow, t.dueHigh = low.Add(after), high.Add(after)
}

func (t *modelTask) lend(lease time.Duration, low, high time.Time) {
	t.lease, t.endLow, t.endHigh, t.gap, t.maySpared, t.spared = lease, low.Add(lease), high.Add(lease+time.Microsecond), false, false, time.Time{}
}

// holder returns the task that holds a unique key.
func (m *model) holder(key string) string {
	for id, t := range m.tasks {
		if t.holds && t.task.UniqueKey == key {
			return id
		}
	}
	return ""
}

func (m *model) add(task taskqueue.Task, before, after time.Time) taskqueue.Result {
	if m.tasks[task.ID] != nil {
		return taskqueue.Result{Verdict: taskqueue.Exists, ID: task.ID}
	}
	if task.UniqueKey != "" {
		if holder := m.holder(task.UniqueKey); holder != "" {
			m.counts[taskqueue.CountDuplicate]++
			return taskqueue.Result{Verdict: taskqueue.Duplicate, ID: holder}
		}
	}
	t := &modelTask{task: task, state: taskqueue.StateScheduled, holds: task.UniqueKey != ""}
	t.due(before, after, task.Delay)
	m.link(t)
	m.tasks[task.ID] = t
	m.counts[taskqueue.CountAdded]++
	return taskqueue.Result{Verdict: taskqueue.Added, ID: task.ID}
}

func (m *model) tick(t taskqueue.Tick, before, after time.Time) bool {
	last, known := m.ticks[t.Name]
	if known && t.Schedule != last.Schedule && !t.Defined.After(last.Defined) {
		return false
	}
	if !t.At.IsZero() && !t.At.After(last.Last) {
		return false
	}
	if t.Defined.After(last.Defined) {
		last.Defined = t.Defined
	}
	last.Name, last.Schedule = t.Name, t.Schedule
	if m.ticks[t.Name] = last; t.At.IsZero() {
		return true
	}
	last.Last = t.At
	m.ticks[t.Name] = last
	return m.add(t.Task, before, after).Verdict == taskqueue.Added
}

func (m *model) unschedule(name string) bool {
	_, known := m.ticks[name]
	delete(m.ticks, name)
	return known
}

// stepped notes a call of a worker.
func (m *model) stepped(before, after time.Time) {
	for _, t := range m.tasks {
		if !m.stepLow.IsZero() && after.Sub(m.stepLow) > t.lease/3 {
			t.gap = true
		}
	}
	m.stepLow, m.stepHigh = before, after
}

func (m *model) over(t *modelTask, s taskqueue.State, c taskqueue.Counter) {
	t.state, t.holds, t.parents = s, false, nil
	m.counts[c]++
	m.ended = append(m.ended, modelEnd{t.task.ID, s})
}

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
