package audit

import (
	"bytes"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
)

// acknowledged: what was acknowledged is there, as it was given, and nothing else.
func (a *audit) acknowledged(l *life) {
	acknowledged, safe := false, false
	for _, e := range l.of[ledger.Added] {
		if e.Verdict != taskqueue.Duplicate {
			acknowledged = true
			safe = safe || !in(a.Losses, e.Began, e.At)
		}
	}
	if acknowledged {
		a.Acknowledged++
	}
	switch {
	case l.task == nil:
		a.fault("task %s is there, and nobody has added it", l.id)
	case l.info != nil && !bytes.Equal(l.info.Payload, l.task.Payload):
		a.fault("R2: task %s has the payload %q", l.id, l.info.Payload)
	case l.info == nil && safe:
		a.fault("task %s was acknowledged, and is lost", l.id)
	case l.info == nil && acknowledged:
		a.Lost++
	case l.info != nil && len(l.of[ledger.Added]) == 0:
		a.fault("task %s is there, and nobody knows: its enqueue was not repeated", l.id)
	}
}

// end: every task has ended, as it should, and has run for that.
func (a *audit) end(l *life) {
	i := l.info
	if i == nil || l.task == nil {
		return
	}
	do := plan.Of(l.task)
	cancelled := len(l.of[ledger.Cancelled]) > 0
	a.Crashes += i.Crashes
	switch {
	case l.fate == waits || l.fate == skipped: // see parents
		return
	case l.fate == anyFate && (i.State == taskqueue.StateWaiting || i.State == taskqueue.StateCancelled):
		return
	case !i.State.Ended():
		a.fault("task %s has not ended: it is %v, due at %v, attempt %d, %d crashes, last error %q", l.id, i.State, i.DueAt, i.Attempt, i.Crashes, i.LastError)
		return
	case cancelled && !l.shaken && i.State != taskqueue.StateCancelled && i.State != taskqueue.StateDone:
		a.fault("task %s was cancelled, and is %v", l.id, i.State)
	case !cancelled && !do.MayEnd(i.State):
		// A cancellation whose answer was lost may have been carried out.
		if i.State != taskqueue.StateCancelled || len(l.of[ledger.Cancelling]) == 0 {
			a.fault("task %s, which was to %s, is %v after attempt %d and %d crashes: %s", l.id, do, i.State, i.Attempt, i.Crashes, i.LastError)
		}
	}
	if l.shaken {
		return
	}
	well, failed := 0, 0
	for _, e := range l.of[ledger.Ended] {
		if e.Text == "" {
			well++
		} else if !e.Lost && do != plan.Snooze && do != plan.Free {
			failed++
		}
	}
	if i.State == taskqueue.StateDone && !l.ran(i.Token) {
		a.fault("task %s is done by the run of token %d, of which no handler has ended well", l.id, i.Token)
	}
	if i.Failures > failed {
		a.fault("task %s has failed %d times, its handlers only %d times", l.id, i.Failures, failed)
	}
	if starts := len(l.of[ledger.Started]); do == plan.Poison && starts > l.task.MaxCrashes {
		a.fault("R9: task %s, which kills its worker, was started %d times, with %d crashes allowed", l.id, starts, l.task.MaxCrashes)
	}
	a.Repeated += max(well-1, 0)
}

// ran reports whether the handler of a run has ended well.
func (l *life) ran(token int64) bool {
	for _, e := range l.of[ledger.Ended] {
		if e.Token == token && e.Text == "" {
			return true
		}
	}
	return false
}

// times: nothing is handed out before its time, by the clock of the store.
func (a *audit) times(l *life) {
	a.Runs += len(l.of[ledger.Started])
	for _, e := range l.of[ledger.Claimed] {
		if e.Now < e.Due {
			a.fault("R7: task %s was claimed %d µs before its time", l.id, e.Due-e.Now)
		}
		if !e.First || l.task == nil || plan.Of(l.task) == plan.Snooze {
			continue
		}
		if at := l.task.RunAt; !at.IsZero() {
			if at.UnixMicro() > e.Due {
				a.fault("R7: task %s was to run at %v, and was due %d µs before that", l.id, at, at.UnixMicro()-e.Due)
			}
		} else if early := e.Enqueued + l.task.Delay.Microseconds() - e.Due; early > 0 {
			a.fault("R7: task %s, with a delay of %v, was due %d µs before that", l.id, l.task.Delay, early)
		}
	}
}
