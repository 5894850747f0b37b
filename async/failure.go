package async

import (
	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file hands what has gone wrong to the tally of a scope and does what that
// decides. A failure takes three steps:
//
//  1. The outcome is classified, and OnFailure or OnPanic asked. That may call
//     users' code, so no lock is held.
//  2. The fact is recorded in the tally under scope.mu, which decides.
//  3. What is decided is done after unlocking: cancelling the scope.
//
// Between 1 and 3 the scope cannot have ended: the task that has failed is still a
// member of it.

// tallyLocked returns the tally of s, making it if need be.
func (s *scope) tallyLocked() *tally.Tally {
	if s.tally == nil {
		s.tally = &tally.Tally{Bare: bare}
	}
	return s.tally
}

// childFailed deals with the outcome of a child that has nobody but s to tell,
// and that was not a success: a Go task, or one that stands for such. The first
// failure cancels s. As in fail, it is recorded before.
func (s *scope) childFailed(t *task, v *verdict) {
	var f tally.Fact
	v.fact(s, &f)
	stopped := v.alone && t.stoppedDaemon(v.cause)
	if f.Class == tally.Panic && s.asksOnPanic(t) && !s.askOnPanic(v, &f) {
		return
	}
	if f.Class == tally.Failure && v.panic == nil && !stopped && s.opts != nil && s.opts.onFailure != nil {
		if f.Err, f.Errs = s.askOnFailure(t, v.err), nil; f.Err == nil {
			return
		}
	}
	s.mu.Lock()
	fails := s.tallyLocked().Child(&f, stopped) == tally.Fails
	if fails {
		s.tally.Decides(f.Err)
	}
	s.alarmLocked()
	s.mu.Unlock()
	if fails {
		s.cancel(canceled(f.Err))
	}
}

// askOnFailure returns what OnFailure makes of err, of the task t: nil if the scope
// is to carry on. If OnFailure itself panics, err counts as if it had not been asked.
func (s *scope) askOnFailure(t *task, err error) (answer error) {
	t.retire() // OnFailure is no part of the handler, and may wait for what queues
	if bad := guard("OnFailure", func() { answer = s.opts.onFailure(err) }); bad != nil {
		s.recordHookError(bad)
		return err
	}
	return answer
}

// fail records a failure of s itself and cancels s with it. The record comes
// first: a task that sees the cancellation finds its reason.
func (s *scope) fail(f tally.Fact) {
	s.mu.Lock()
	s.tallyLocked().Fail(&f)
	s.tally.Decides(f.Err)
	s.alarmLocked()
	s.mu.Unlock()
	s.cancel(canceled(f.Err))
}

// failWithOutcome fails s with the outcome of a task, even if it is an echo.
func (s *scope) failWithOutcome(v *verdict) {
	var f tally.Fact
	v.fact(s, &f)
	s.fail(f)
}

// record notes a fact without cancelling anything.
func (s *scope) record(f tally.Fact) {
	s.mu.Lock()
	s.tallyLocked().Fail(&f)
	s.mu.Unlock()
}

// recordOutcome records the outcome of a task without cancelling anything.
func (s *scope) recordOutcome(v *verdict) {
	var f tally.Fact
	if v.fact(s, &f); f.Class == tally.Echo {
		s.recordEcho()
	} else {
		s.record(f)
	}
}

// isEcho reports that a child's outcome only repeats that s was cancelled.
func (s *scope) isEcho(v *verdict) bool { return v.echo && s.stoppedWith(v.cause) }

// recordEcho records that a child reported nothing but the cancellation of s.
func (s *scope) recordEcho() {
	s.mu.Lock()
	s.tallyLocked().Echo()
	s.mu.Unlock()
}

// recordSkipped records that something was not done because s was cancelled.
func (s *scope) recordSkipped() {
	s.mu.Lock()
	s.tallyLocked().Skip()
	s.mu.Unlock()
}

// excuse notes that s was cancelled for cause, and that this is no failure: what
// only repeats it does not count, and neither does what was skipped for it. A leader
// that is about to cancel s finds that it was not the first.
func (s *scope) excuse(cause error) {
	s.mu.Lock()
	s.tallyLocked().Excused(cause)
	s.mu.Unlock()
}

// recordHookError records an error of a hook, an observer or a discard. On a scope
// that has ended, and on a root, there is nobody but the root to tell. Nobody asks
// the scope of a task with Restart how it has gone: that in which it stands is told.
func (s *scope) recordHookError(err error) { s.recordHookErrorIf(always, err) }

func always() bool { return true }

// recordHookErrorIf is recordHookError if ok, which is asked in the same step, says so.
func (s *scope) recordHookErrorIf(ok func() bool, err error) {
	if s.t != nil && s.t.more != nil && s.t.more.restart != nil {
		s = s.t.owner
	}
	s.mu.Lock()
	if !ok() {
		s.mu.Unlock()
		return
	}
	over := s.t == nil || s.ended || s.t.kind == kindRoot
	if !over {
		s.tallyLocked().Hook(err)
		s.reviewGroupLocked()
	}
	s.mu.Unlock()
	if over {
		s.home.report(err)
	}
}

// stoppedDaemon reports that t is a daemon and that cause is its owner's: it was
// dismissed, or the owner was cancelled. What its handler returns then is how
// services stop, and no failure; what its own tasks and hooks say still counts.
func (t *task) stoppedDaemon(cause error) bool {
	t = t.whole()
	if t.more == nil || !t.more.daemon || cause == nil {
		return false
	}
	return cause == ErrScopeDone || t.owner.stoppedWith(cause)
}
