package audit

import (
	"cmp"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
)

// parents: a task runs when those that it waits for are done, and what OnFailed says happens if one ends
// in another way.
func (a *audit) parents(l *life) {
	if len(l.of[ledger.Refused]) > 0 && len(a.Losses) == 0 {
		a.fault("task %s, or one beside it, was refused: %s", l.id, l.of[ledger.Refused][0].Text)
	}
	if l.task == nil || l.info == nil {
		return
	}
	for _, id := range l.task.After {
		p := a.lives[id]
		if p == nil || p.info == nil || p.shaken {
			l.fate = anyFate // a step of the other one may be lost
			return
		}
		is := p.info.State
		switch l.task.OnFailed {
		case taskqueue.OnFailedSkip:
			if is.Ended() && is != taskqueue.StateDone {
				l.fate = skipped
			}
		case taskqueue.OnFailedRun:
			if is.Ended() {
				is = taskqueue.StateDone
			}
		}
		if is != taskqueue.StateDone && l.fate != skipped {
			l.fate = waits
		}
		for _, c := range l.of[ledger.Claimed] {
			switch sent := p.sent(); {
			case is != taskqueue.StateDone:
				a.fault("task %s was claimed, and task %s, after which it was to run, is %v", l.id, id, is)
			case p.info.State == taskqueue.StateDone && sent != nil && c.At < sent.At:
				a.fault("task %s was claimed before task %s, after which it was to run, was done", l.id, id)
			}
		}
	}
	want := map[fate]taskqueue.State{skipped: taskqueue.StateCancelled, waits: taskqueue.StateWaiting, free: l.info.State}[l.fate]
	if is := l.info.State; is != want && (is != taskqueue.StateCancelled || len(l.of[ledger.Cancelling]) == 0) {
		a.fault("task %s is %v, and has to be %v because of those after which it was to run: %s", l.id, is, want, l.task.OnFailed)
	}
}

// A fate is what those that a task was to run after have made of it.
type fate int

const (
	free    fate = iota // it runs
	waits               // one of them has not ended, or has failed and is waited for
	skipped             // one of them has failed
	anyFate             // nobody knows
)

// sent is when the outcome of the last run was sent first; nil if none was.
func (l *life) sent() *ledger.Entry {
	i := slices.IndexFunc(l.of[ledger.Settling], func(e *ledger.Entry) bool { return e.Token == l.info.Token })
	if i < 0 {
		return nil
	}
	return l.of[ledger.Settling][i]
}

// limits: no more tasks of a tenant have leases at a time than the limit says. A lease lasts from the answer
// to its claim at least until the outcome is sent, or for a lease from when the claim was sent.
func (a *audit) limits() {
	type step struct {
		at int64
		n  int
	}
	tenants := map[string][]step{}
	for _, id := range a.ids {
		l := a.lives[id]
		if l.task == nil || l.task.LimitKey == "" || l.shaken {
			continue
		}
		for _, c := range l.of[ledger.Claimed] {
			end := c.Began + int64(plan.Lease)
			for _, s := range l.of[ledger.Settling] {
				if s.Token == c.Token {
					end = min(end, s.At)
				}
			}
			if c.At < end {
				tenants[l.task.LimitKey] = append(tenants[l.task.LimitKey], step{c.At, 1}, step{end, -1})
			}
		}
	}
	if len(tenants) > 0 && !slices.Contains(a.Stats.Limits, plan.Limit) {
		if len(a.Losses) == 0 {
			a.fault("the limit %+v is lost: the store has %+v", plan.Limit, a.Stats.Limits)
		}
		return
	}
	for tenant, all := range tenants {
		slices.SortFunc(all, func(x, y step) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.n, y.n)) })
		running, most := 0, 0
		for _, s := range all {
			running += s.n
			most = max(most, running)
		}
		if most > plan.Limit.Concurrency {
			a.fault("%d tasks of %s had leases at a time, %d may", most, tenant, plan.Limit.Concurrency)
		}
	}
}
