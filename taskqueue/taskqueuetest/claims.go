package taskqueuetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// claim checks a claim; all is what the store has after it.
func (m *model) claim(r store.ClaimRequest, got taskqueue.Claimed, all map[string]taskqueue.Info) error {
	now := got.Now
	dead, err := m.reap(now, all)
	if err != nil {
		return err
	}
	m.stepped(now, now)
	m.release(now, now)
	if trimmed := m.forget(now); trimmed != got.Trimmed {
		return fmt.Errorf("claim said that it has trimmed %d, the model %d", got.Trimmed, trimmed)
	}
	return m.taken(r, got, dead)
}

// begin checks one task of a claim.
func (m *model) begin(r store.ClaimRequest, t *modelTask, g taskqueue.Info, now time.Time) error {
	switch {
	case g.ID != t.task.ID:
		return fmt.Errorf("claim got %s, the model %s", g.ID, t.task.ID)
	case g.Token <= m.lastToken:
		return fmt.Errorf("R3: %s got token %d, the last was %d", g.ID, g.Token, m.lastToken)
	}
	m.lastToken, t.token = g.Token, g.Token
	t.state, t.reaped = taskqueue.StateRunning, false
	t.group, _ = m.limit(t)
	t.attempt++
	t.holds = t.holds && t.task.Until == taskqueue.End
	t.lend(r.Lease, now, now)
	m.counts[taskqueue.CountClaimed]++
	m.claims[r.Worker] = append(m.claims[r.Worker], store.Ref{ID: g.ID, Token: g.Token})
	return nil
}

// most returns how many tasks a claim gets at least, and at most, if so many are due.
func (m *model) most(r store.ClaimRequest, now time.Time) (low, high int) {
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
	if m.settings.Rate == 0 {
		return most, most
	}
	burst := float64(max(m.settings.Burst, 1))
	if m.allowedAt.IsZero() {
		m.allowance = burst
	}
	m.allowance = min(burst, m.allowance+max(now.Sub(m.allowedAt), 0).Seconds()*m.settings.Rate)
	m.allowedAt = now
	const rounding = 1e-3
	return min(most, int(math.Floor(m.allowance-rounding))), min(most, int(math.Floor(m.allowance+rounding)))
}

// nextDue checks that a worker which sleeps until then misses nothing. As for what is told of a
// task, a store that keeps microseconds may round up.
func (m *model) nextDue(got taskqueue.Claimed) error {
	if m.settings.Paused || m.settings.Concurrency > 0 || m.settings.Rate > 0 {
		return nil
	}
	for id, t := range m.tasks {
		if _, l := m.limit(t); l == nil && t.waits() && (got.NextDue.IsZero() || got.NextDue.After(got.Now) && got.NextDue.After(t.dueHigh.Add(2*time.Microsecond))) {
			return fmt.Errorf("claim said that nothing is due before %v, and %s is at %v", got.NextDue, id, t.dueHigh)
		}
	}
	return nil
}

// replay checks a claim that was repeated.
func (m *model) replay(r store.ClaimRequest, got taskqueue.Claimed) error {
	m.stepped(got.Now, got.Now)
	var want []store.Ref
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
