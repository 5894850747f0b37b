package tree

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file tells those whom it concerns that a task has failed. A Go task that fails takes these steps:
//
//  1. run.go: GoTask.Run calls the handler, GoTask.finish joins what that has started.
//  2. ChildFailed makes a fact of the verdict.
//  3. askOnFailure or askOnPanic asks users. Steps 2 and 3 call users' code, so no lock is held.
//  4. Record hands the fact to the tally of the owner, under Scope.Mu, and the tally decides.
//  5. Record cancels the owner, if that is decided, after it has unlocked Scope.Mu.
//  6. TellEnd tells the observers.
//  7. run.go: GoTask.leave takes the task off its owner.
//
// Before step 7 the owner cannot end, for the task is a member of it. Fail, which anybody may
// call, begins with step 4: if it comes too late, Record reports that.

// ChildFailed does steps 2 to 5 for t, a child that has failed with v and has nobody but s to
// tell: a Go task, or one that stands for such.
func (s *Scope) ChildFailed(t *Task, v *Verdict) {
	var f tally.Fact
	v.fact(s, t, &f) // step 2
	nameFailure(t, &f)
	counts := true
	switch { // step 3
	case f.Class == tally.Panic && asksOnPanic(s, t):
		counts = askOnPanic(s, t, v, &f)
	case f.Class == tally.Failure && !f.Quiet && s.opts != nil && s.opts.OnFailure != nil:
		counts = askOnFailure(s, t, &f)
	}
	if f.Class == tally.Echo && !f.Quiet {
		noteCutOff(t, v)
	}
	if counts {
		s.Record(&f)
	}
}

// askOnFailure asks OnFailure about f, of the task t. It writes to f what is left to be
// told, and reports false if that is nothing. If OnFailure itself panics, f counts as
// if nobody had been asked.
func askOnFailure(s *Scope, t *Task, f *tally.Fact) bool {
	t.Retire() // OnFailure is no part of the handler, and may wait for what queues
	err := f.Err
	answer := err
	ask := func() { answer = s.opts.OnFailure(err) } // not f, which would be on the heap
	if bad := Guard("OnFailure", ask); bad != nil {
		s.RecordHookError(bad)
	}
	if tally.Same(answer, err) { // as if nobody had been asked
		return true
	}
	*f = tally.Fact{Err: answer}
	return answer != nil
}

// asksOnPanic reports whether s asks somebody about panics of t.
func asksOnPanic(s *Scope, t *Task) bool {
	return t.Kind == KindGo && s.opts != nil && s.opts.OnPanic != nil
}

// askOnPanic asks OnPanic about the outcome v of the task t, which has ended with a
// panic. It writes to f what is left to be told, and reports false if that is nothing.
// The errors of t beside a panic that does not count are told as if t had ended with
// them.
func askOnPanic(s *Scope, t *Task, v *Verdict, f *tally.Fact) bool {
	t.Retire()   // OnPanic is no part of the handler, and may wait for what queues
	p := v.Panic // not v itself: the verdict of every Go task would be on the heap
	for p != nil {
		face := p.AsError()
		answer := face
		if bad := Guard("OnPanic", func() { answer = s.opts.OnPanic(face) }); bad != nil && !p.SameAs(bad) {
			s.RecordHookError(bad)
		}
		switch {
		case p == v.Panic && tally.Same(answer, face): // as if nobody had been asked
			return true
		case tally.Same(answer, face):
			*f = tally.Fact{Class: tally.Panic, Err: face, Errs: p.Also, Dropped: p.Dropped}
			return true
		}
		p = p.withoutCount()
		if answer != nil {
			*f = tally.Fact{Err: answer, Errs: append([]error{answer}, p.Also...), Dropped: p.Dropped}
			return true
		}
		rest := Joined(t, p.Also, p.Dropped)
		if p = p.next(); p != nil {
			continue
		}
		*f = tally.Fact{Err: rest}
		if v.Goexit { // OnFailure is not asked about that
			f.Class, f.Err = tally.Goexit, ErrGoexit
			return true
		}
		return rest != nil && (s.opts.OnFailure == nil || askOnFailure(s, t, f))
	}
	return false
}

// next returns the first panic that came beside p, with all else that did; nil if there is none.
func (p *Panic) next() *Panic {
	for i, err := range p.Also {
		if next := Codec.PanicIn(err); next != nil {
			return next.with(slices.Concat(p.Also[:i], p.Also[i+1:]), p.Dropped)
		}
	}
	return nil
}

// noteCutOff notes that t, which has ended with v, only repeats why it was
// cancelled, in case the owner of t is a group that was dismissed.
func noteCutOff(t *Task, v *Verdict) {
	if g, gathers := t.Owner.Task.Self.(gathering); gathers && tally.Same(v.Cause, ErrDismissed) {
		g.CutOff(t.Name())
	}
}

// Record does steps 4 and 5: the tally of s judges f, and s is cancelled if the tally says so.
// The record comes first: a task that sees the cancellation finds its reason. Record reports
// true, and does nothing, if f is the root's to tell: s has ended, or s is a root and f an
// error of a hook.
func (s *Scope) Record(f *tally.Fact) (isForRoot bool) { return s.recordIf(nil, f) }

// recordIf is Record if first, which is asked in the same step, says so; nil: it does.
func (s *Scope) recordIf(first func() bool, f *tally.Fact) (isForRoot bool) {
	s.Mu.Lock()
	if first != nil && !first() {
		s.Mu.Unlock()
		return false
	}
	if s.Ended || f.Class == tally.Hook && s.Task.Kind == KindRoot {
		s.Mu.Unlock()
		return true
	}
	decision := tallyLocked(s).Record(f) // step 4
	if f.Class != tally.Echo && decision != tally.Ignored {
		failedLocked(s)
	}
	raises := f.Class == tally.Panic && decision == tally.Fails
	if raises && !s.leftTasks.Load() { // nobody raises what comes after Scope has returned
		alarmLocked(s) // of a group at the root nothing more: the root is told of it anyhow
	}
	s.Mu.Unlock()
	if decision == tally.Fails { // step 5
		cause := f.Err
		if f.Class != tally.Panic && len(f.Errs) > 0 { // one of the errors that s lists
			cause = withoutPath(f.Errs[0])
		}
		s.Cancel(Canceled(cause))
	}
	return false
}

// failedLocked tells s, in which something has failed, if it is a group.
func failedLocked(s *Scope) {
	if s.Task.Kind == KindGroup {
		s.Task.Self.(gathering).FailedLocked()
	}
}

// RecordOutcome records the outcome of a task, or of the handler or body of s itself.
// goesOn: it does not cancel s.
func (s *Scope) RecordOutcome(v *Verdict, goesOn bool) {
	var f tally.Fact
	v.fact(s, nil, &f)
	f.GoesOn = goesOn
	s.Record(&f)
}

// RecordHookError records an error of a hook, an observer or a discard. If s has ended,
// or is a root, the root is told at once. A failure in the last run of a task that
// is stopped is the task's: the run has no outcome of its own then.
func (s *Scope) RecordHookError(err error) { s.recordHookErrorIf(nil, err) }

// recordHookErrorIf is RecordHookError if first says so, as in recordIf.
func (s *Scope) recordHookErrorIf(first func() bool, err error) {
	if s.Task.Kind == KindRun && s.Task.Owner.Task.Stopped() != nil {
		s = s.Task.Owner
	}
	if s.recordIf(first, &tally.Fact{Class: tally.Hook, Err: err}) {
		s.Home.Report(withoutPath(err))
	}
}

// TellEnd does step 6 of failure.go: it tells the observers that t has ended. The slot of t stays with it, so that who
// waits for t gets it, and nothing new is started before.
func TellEnd(t *Task, v *Verdict, stop *StopError) {
	if untold(t) {
		return
	}
	TellObservers(t.Owner, EndEvent(t, v, stop))
}

// tellPanic tells the observers of s of a panic of t, once on its way up.
func tellPanic(s *Scope, t *Task, p *Panic) {
	if s.Observers != nil && p.identity.observed.CompareAndSwap(false, true) {
		TellObservers(s, Event{Kind: eventPanic, Of: t, Task: p.Task, Err: p.AsError()})
	}
}

// guarded has an observer called; what goes wrong in that is an error of in.
func guarded(in *Scope, call func() error) {
	var err error
	if failed := Guard("observer", func() { err = call() }); failed != nil {
		err = failed
	}
	if err != nil {
		in.RecordHookError(err)
	}
}
