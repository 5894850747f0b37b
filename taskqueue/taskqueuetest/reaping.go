package taskqueuetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// reap finds the leases that the store has ended, and checks that they were to end.
func (m *model) reap(now time.Time, all map[string]taskqueue.Info) (dead []string, err error) {
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
			return nil, fmt.Errorf("the lease of %s was ended at %v, it lasted until %v", id, now, t.endLow)
		case reaped && gap && !t.maySpared:
			return nil, fmt.Errorf("R9: the lease of %s was ended though nobody had called for a third of it", id)
		case !reaped && over && !t.gap:
			return nil, fmt.Errorf("the lease of %s was not ended, and there was no gap", id)
		case !reaped && !t.spared.IsZero() && !now.Before(t.spared.Add(t.lease)):
			return nil, fmt.Errorf("the lease of %s was not ended after it had got its length once more", id)
		case reaped:
			if m.crash(t, now); t.state == taskqueue.StateDead {
				dead = append(dead, id)
			}
		case over && t.spared.IsZero():
			t.spared = now
		}
		t.maySpared = t.maySpared || !now.Before(t.endLow)
	}
	return dead, nil
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

// forget is what a claim deletes. It returns how many dead letters that were.
func (m *model) forget(now time.Time) (trimmed int) {
	var dead []*modelTask
	for id, t := range m.tasks {
		if (t.state == taskqueue.StateDone || t.state == taskqueue.StateCancelled) && !t.ended.Add(taskqueue.MinRetention).After(now) {
			delete(m.tasks, id)
		}
		if keep := m.settings.DeadRetention; t.state == taskqueue.StateDead && keep > 0 && !t.ended.Truncate(time.Microsecond).Add(keep).After(now) {
			delete(m.tasks, id)
			trimmed++
			continue
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
			trimmed++
		}
	}
	m.counts[taskqueue.CountTrimmed] += int64(trimmed)
	return trimmed
}
