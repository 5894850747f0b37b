package taskqueuetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// A model is what a store has to be like, without any thought of speed. It has no
// clock: a claim says when it was made, and of every other call it knows two times
// between which that was.
type model struct {
	tasks     map[string]*modelTask
	settings  taskqueue.Settings
	counts    map[taskqueue.Counter]int64
	ticks     map[string]time.Time
	claims    map[string][]taskqueue.Ref // of the last claim of each worker
	lastToken int64
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
	cancel, holds, reaped                bool
	progress                             string

	lease           time.Duration
	endLow, endHigh time.Time // of the lease
	gap             bool      // while it had the lease there was a gap which may count
	maySpared       bool      // the lease may have got its length once more
	spared          time.Time // when the lease was seen to last though it had run out
}

func newModel() *model {
	return &model{
		tasks: map[string]*modelTask{}, counts: map[taskqueue.Counter]int64{},
		ticks: map[string]time.Time{}, claims: map[string][]taskqueue.Ref{},
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
	m.tasks[task.ID] = t
	m.counts[taskqueue.CountAdded]++
	return taskqueue.Result{Verdict: taskqueue.Added, ID: task.ID}
}

func (m *model) tick(t taskqueue.Tick, before, after time.Time) bool {
	if last, known := m.ticks[t.Name]; known && !t.At.After(last) {
		return false
	}
	m.ticks[t.Name] = t.At
	return m.add(t.Task.Task, before, after).Verdict == taskqueue.Added
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

// claim checks a claim; all is what the store has after it.
func (m *model) claim(r taskqueue.ClaimRequest, got taskqueue.Claimed, all map[string]taskqueue.Info) error {
	now := got.Now
	if err := m.reap(now, got.Tasks, all); err != nil {
		return err
	}
	m.stepped(now, now)
	m.forget(now)
	most, running := r.Max, 0
	for _, t := range m.tasks {
		if t.state == taskqueue.StateRunning {
			running++
		}
	}
	if m.settings.Concurrency > 0 {
		most = min(most, max(m.settings.Concurrency-running, 0))
	}
	if m.settings.Paused {
		most = 0
	}
	var want []*modelTask
	for _, t := range m.tasks {
		if t.waits() && !t.dueLow.After(now) {
			want = append(want, t)
		}
	}
	slices.SortFunc(want, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(b.task.Priority, a.task.Priority), a.dueLow.Compare(b.dueLow), cmp.Compare(a.task.ID, b.task.ID))
	})
	want = want[:min(most, len(want))]
	if len(got.Tasks) != len(want) {
		return fmt.Errorf("at %v Claim got %d tasks, the model %d", now, len(got.Tasks), len(want))
	}
	m.claims[r.Worker] = nil
	for i, t := range want {
		g := got.Tasks[i]
		switch {
		case g.ID != t.task.ID:
			return fmt.Errorf("claim got %s, the model %s", g.ID, t.task.ID)
		case g.Token <= m.lastToken || g.Token < now.UnixMicro():
			return fmt.Errorf("R3: %s got token %d at %d, the last was %d", g.ID, g.Token, now.UnixMicro(), m.lastToken)
		}
		m.lastToken, t.token = g.Token, g.Token
		t.state, t.reaped = taskqueue.StateRunning, false
		t.attempt++
		t.holds = t.holds && t.task.Until == taskqueue.End
		t.lend(r.Lease, now, now)
		m.counts[taskqueue.CountClaimed]++
		m.claims[r.Worker] = append(m.claims[r.Worker], taskqueue.Ref{ID: g.ID, Token: g.Token})
	}
	return nil
}

// reap finds the leases that the store has ended, and checks that they were to end.
func (m *model) reap(now time.Time, got []taskqueue.Info, all map[string]taskqueue.Info) error {
	for id, t := range m.tasks {
		if t.state != taskqueue.StateRunning {
			continue
		}
		i, known := all[id]
		reaped := known && i.Crashes > t.crashes
		if !known { // a dead letter that was trimmed, or a task that was cancelled
			reaped = true
		}
		// A gap that ends with this very call.
		gap := !m.stepHigh.IsZero() && now.Sub(m.stepHigh) > t.lease/3
		if now.Sub(m.stepLow) > t.lease/3 {
			t.gap = true
		}
		over := !now.Before(t.endHigh)
		switch {
		case reaped && now.Before(t.endLow):
			return fmt.Errorf("the lease of %s was ended at %v, it lasted until %v", id, now, t.endLow)
		case reaped && gap && !t.maySpared:
			return fmt.Errorf("R9: the lease of %s was ended though nobody had called for a third of it", id)
		case !reaped && over && !t.gap:
			return fmt.Errorf("the lease of %s was not ended, and there was no gap", id)
		case !reaped && !t.spared.IsZero() && !now.Before(t.spared.Add(t.lease)):
			return fmt.Errorf("the lease of %s was not ended after it had got its length once more", id)
		case reaped:
			m.crash(t, now)
		case over && t.spared.IsZero():
			t.spared = now
		}
		t.maySpared = t.maySpared || !now.Before(t.endLow)
	}
	return nil
}

func (m *model) crash(t *modelTask, now time.Time) {
	t.crashes++
	t.reaped = true
	m.counts[taskqueue.CountCrashed]++
	switch {
	case t.cancel:
		m.over(t, taskqueue.StateCancelled, taskqueue.CountCancelled)
	case t.crashes >= t.task.MaxCrashes:
		m.over(t, taskqueue.StateDead, taskqueue.CountDead)
	default:
		wait := time.Duration(0)
		if t.crashes > 1 {
			wait = time.Second << (t.crashes - 2)
		}
		t.state = taskqueue.StateRetrying
		t.due(now, now, wait)
	}
	t.ended = now
}

func (m *model) over(t *modelTask, s taskqueue.State, c taskqueue.Counter) {
	t.state, t.holds = s, false
	m.counts[c]++
}

// forget is what a claim deletes.
func (m *model) forget(now time.Time) {
	var dead []*modelTask
	for id, t := range m.tasks {
		if (t.state == taskqueue.StateDone || t.state == taskqueue.StateCancelled) && !t.ended.Add(taskqueue.MinRetention).After(now) {
			delete(m.tasks, id)
		}
		if t.state == taskqueue.StateDead {
			dead = append(dead, t)
		}
	}
	slices.SortFunc(dead, func(a, b *modelTask) int {
		return cmp.Or(a.ended.Truncate(time.Microsecond).Compare(b.ended.Truncate(time.Microsecond)), cmp.Compare(a.task.ID, b.task.ID))
	})
	if most := m.settings.MaxDead; most > 0 && len(dead) > most {
		for _, t := range dead[:len(dead)-most] {
			delete(m.tasks, t.task.ID)
			m.counts[taskqueue.CountTrimmed]++
		}
	}
}

// replay checks a claim that was repeated.
func (m *model) replay(r taskqueue.ClaimRequest, got taskqueue.Claimed) error {
	m.stepped(got.Now, got.Now)
	var want []taskqueue.Ref
	for _, ref := range m.claims[r.Worker] {
		if t := m.tasks[ref.ID]; t != nil && t.state == taskqueue.StateRunning && t.token == ref.Token {
			want = append(want, ref)
			t.lend(r.Lease, got.Now, got.Now)
		}
	}
	if !slices.Equal(refs(got.Tasks), want) {
		return fmt.Errorf("R10: a claim that was repeated got %v, the model %v", refs(got.Tasks), want)
	}
	return nil
}

func (m *model) extend(ref taskqueue.Ref, r taskqueue.ExtendRequest, before, after time.Time) taskqueue.ExtendResult {
	t := m.tasks[ref.ID]
	if t == nil || t.state != taskqueue.StateRunning || t.token != ref.Token {
		return taskqueue.Lost
	}
	t.lend(r.Lease, before, after)
	if p, given := r.Progress[ref.ID]; given {
		t.progress = string(p)
	}
	if t.cancel {
		return taskqueue.CancelRequested
	}
	return taskqueue.Extended
}

func (m *model) settle(o taskqueue.Outcome, before, after time.Time) taskqueue.SettleResult {
	t := m.tasks[o.ID]
	switch {
	case t == nil:
		return taskqueue.Gone
	case t.token != o.Token:
		return taskqueue.Stale
	case t.settled == o.Token:
		return taskqueue.Settled
	case t.state != taskqueue.StateRunning && !t.reaped:
		return taskqueue.Stale
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
	return taskqueue.Settled
}

// ends is what an outcome makes of a task.
func (m *model) ends(t *modelTask, o taskqueue.Outcome, before, after time.Time) {
	if t.cancel && o.Kind != taskqueue.Succeeded {
		m.over(t, taskqueue.StateCancelled, taskqueue.CountCancelled)
		return
	}
	switch o.Kind {
	case taskqueue.Succeeded:
		m.over(t, taskqueue.StateDone, taskqueue.CountDone)
	case taskqueue.Failed, taskqueue.Buried:
		t.failures++
		m.counts[taskqueue.CountFailed]++
		if o.Kind == taskqueue.Failed {
			t.releases = 0
		}
		if o.Kind == taskqueue.Buried || t.failures >= t.task.MaxFailures {
			m.over(t, taskqueue.StateDead, taskqueue.CountDead)
			return
		}
		t.state = taskqueue.StateRetrying
		t.due(before, after, o.After)
	default:
		t.attempt--
		t.releases++
		if o.Kind == taskqueue.Snoozed {
			t.releases = 0
		}
		m.counts[taskqueue.CountReleased]++
		t.state = taskqueue.StateScheduled
		if t.failures > 0 {
			t.state = taskqueue.StateRetrying
		}
		t.due(before, after, o.After)
	}
}

func (m *model) act(id string, act taskqueue.Act, did bool, err error, before, after time.Time) error {
	t := m.tasks[id]
	if t == nil {
		if !errors.Is(err, taskqueue.ErrNotFound) {
			return fmt.Errorf("act on a task that there is not said %v %v", did, err)
		}
		return nil
	}
	var held *taskqueue.DuplicateError
	if errors.As(err, &held) {
		if holder := m.holder(t.task.UniqueKey); act != taskqueue.ActRetry || did || holder == "" || held.Holder != holder || held.UniqueKey != t.task.UniqueKey {
			return fmt.Errorf("act %d on %s said %w, the model has %q as the holder", act, id, err, holder)
		}
		return nil
	}
	if err != nil {
		return err
	}
	want := false
	switch {
	case act == taskqueue.ActCancel && t.waits():
		want, t.reaped = true, false
		m.over(t, taskqueue.StateCancelled, taskqueue.CountCancelled)
	case act == taskqueue.ActCancel && t.state == taskqueue.StateRunning:
		want, t.cancel = true, true
	case act == taskqueue.ActPromote && t.waits():
		want = t.dueLow.After(after)
		if !want && t.dueLow.After(before) {
			want = did // who knows
		}
		if want {
			t.due(before, after, 0)
		}
	case act == taskqueue.ActRetry && (t.state == taskqueue.StateDead || t.state == taskqueue.StateCancelled):
		if t.task.UniqueKey != "" && m.holder(t.task.UniqueKey) != "" {
			return fmt.Errorf("retry of %s did not say that %s holds its key", id, m.holder(t.task.UniqueKey))
		}
		want = true
		t.failures, t.crashes, t.releases, t.cancel, t.reaped = 0, 0, 0, false, false
		t.holds, t.state = t.task.UniqueKey != "", taskqueue.StateScheduled
		t.due(before, after, 0)
	case act == taskqueue.ActDelete && t.state != taskqueue.StateRunning:
		want = true
		delete(m.tasks, id)
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
			delete(m.tasks, id)
			n--
		}
	}
	if n != 0 {
		return fmt.Errorf("purge has deleted %d less than it said", n)
	}
	return nil
}
