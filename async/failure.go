package async

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file hands what has gone wrong to the tally of a scope and does what that
// decides, and tells observers. A failure takes three steps:
//
//  1. The outcome is classified, and OnFailure or OnPanic asked. That may call
//     users' code, so no lock is held.
//  2. The fact is recorded in the tally under scope.mu, which decides.
//  3. What is decided is done after unlocking: cancelling the scope.
//
// Between 1 and 3 the scope cannot have ended: the task that has failed is still a
// member of it.

// record has the tally of s judge f, and cancels s if that says so. The record comes
// first: a task that sees the cancellation finds its reason. It reports true, and does
// nothing, if it is too late, and f the root's to tell: s has ended; or it is a root,
// and f an error of a hook.
func (s *scope) record(f *tally.Fact) (late bool) { return s.recordIf(nil, f) }

// recordIf is record if first, which is asked in the same step, says so; nil: it does.
func (s *scope) recordIf(first func() bool, f *tally.Fact) (late bool) {
	s.mu.Lock()
	if first != nil && !first() {
		s.mu.Unlock()
		return false
	}
	if s.ended || f.Class == tally.Hook && s.t.kind == kindRoot {
		s.mu.Unlock()
		return true
	}
	decision := tallyLocked(s).Record(f)
	if f.Class != tally.Echo && decision != tally.Ignored {
		failedLocked(s)
	}
	if decision == tally.Fails && !s.abandoned.Load() { // nobody raises what comes after Scope has returned
		alarmLocked(s) // of a group at the root nothing more: the root is told of it anyhow
	}
	s.mu.Unlock()
	if decision == tally.Fails {
		s.cancel(canceled(causeOf(f)))
	}
	return false
}

// causeOf returns why a scope is cancelled that fails with f: one of the errors that it
// lists.
func causeOf(f *tally.Fact) error {
	if f.Class != tally.Panic && len(f.Errs) > 0 {
		return withoutPath(f.Errs[0])
	}
	return f.Err
}

// recordOutcome records the outcome of a task, or of the handler or body of s itself.
// goesOn: it does not cancel s.
func (s *scope) recordOutcome(v *verdict, goesOn bool) {
	var f tally.Fact
	v.fact(s, &f)
	f.GoesOn = goesOn
	s.record(&f)
}

// recordHookError records an error of a hook, an observer or a discard. If it is too
// late there is nobody but the root to tell. What goes wrong in the last run of a task that
// is stopped is the task's: the run has no outcome of its own then.
func (s *scope) recordHookError(err error) { s.recordHookErrorIf(nil, err) }

// recordHookErrorIf is recordHookError if first says so, as in recordIf.
func (s *scope) recordHookErrorIf(first func() bool, err error) {
	if s.t.kind == kindRun && s.t.owner.t.stopped() != nil {
		s = s.t.owner
	}
	if s.recordIf(first, &tally.Fact{Class: tally.Hook, Err: err}) {
		s.home.report(withoutPath(err))
	}
}

// childFailed deals with the outcome of a child that has nobody but s to tell,
// and that was not a success: a Go task, or one that stands for such. OnPanic or
// OnFailure may say that it does not count.
func (s *scope) childFailed(t *task, v *verdict) {
	var f tally.Fact
	v.fact(s, &f)
	noteQuiet(t, v, &f)
	nameFailure(t, &f)
	counts := true
	switch {
	case f.Class == tally.Panic && asksOnPanic(s, t):
		counts = askOnPanic(s, t, v, &f)
	case f.Class == tally.Failure && !f.Quiet && s.opts != nil && s.opts.onFailure != nil:
		counts = askOnFailure(s, t, &f)
	}
	if f.Class == tally.Echo && !f.Quiet {
		noteCutOff(t, v)
	}
	if counts {
		s.record(&f)
	}
}

// askOnFailure asks OnFailure about f, of the task t. It writes to f what is left to be
// told, and reports false if that is nothing. If OnFailure itself panics, f counts as
// if nobody had been asked.
func askOnFailure(s *scope, t *task, f *tally.Fact) bool {
	t.retire() // OnFailure is no part of the handler, and may wait for what queues
	err := f.Err
	answer := err
	ask := func() { answer = s.opts.onFailure(err) } // not f, which would be on the heap
	if bad := guard("OnFailure", ask); bad != nil {
		s.recordHookError(bad)
	}
	if tally.Same(answer, err) { // as if nobody had been asked
		return true
	}
	*f = tally.Fact{Err: answer}
	return answer != nil
}

// asksOnPanic reports whether s asks somebody about panics of t.
func asksOnPanic(s *scope, t *task) bool {
	return t.kind == kindGo && s.opts != nil && s.opts.onPanic != nil
}

// askOnPanic asks OnPanic about the outcome v of the task t, which has ended with a
// panic. It writes to f what is left to be told, and reports false if that is nothing.
// The errors of t beside a panic that does not count are told as if t had ended with
// them.
func askOnPanic(s *scope, t *task, v *verdict, f *tally.Fact) bool {
	t.retire()   // OnPanic is no part of the handler, and may wait for what queues
	p := v.panic // not v itself: the verdict of every Go task would be on the heap
	for p != nil {
		answer := error(p)
		if bad := guard("OnPanic", func() { answer = s.opts.onPanic(p) }); bad != nil && !p.Is(bad) {
			s.recordHookError(bad)
		}
		switch {
		case p == v.panic && tally.Same(answer, p): // as if nobody had been asked
			return true
		case tally.Same(answer, p):
			*f = tally.Fact{Class: tally.Panic, Err: p, Errs: p.Also, Dropped: p.dropped}
			return true
		}
		p = p.withoutCount()
		if answer != nil {
			*f = tally.Fact{Err: answer, Errs: append([]error{answer}, p.Also...), Dropped: p.dropped}
			return true
		}
		rest := joined(t, p.Also, p.dropped)
		if p = nextPanic(p); p != nil {
			continue
		}
		*f = tally.Fact{Err: rest}
		if v.goexit { // OnFailure is not asked about that
			f.Class, f.Err = tally.Goexit, ErrGoexit
			return true
		}
		return rest != nil && (s.opts.onFailure == nil || askOnFailure(s, t, f))
	}
	return false
}

// withoutCount returns e without the error that says how often a task with [Restart] has
// failed: nothing more has gone wrong.
func (e *PanicError) withoutCount() *PanicError {
	c := *e
	c.Also = slices.DeleteFunc(slices.Clone(e.Also), func(err error) bool {
		count, ok := err.(interface{ isCount(err error) bool })
		return ok && count.isCount(err)
	})
	return &c
}

// nextPanic returns the first panic that came beside p, with all else that did; nil if
// there is none.
func nextPanic(p *PanicError) *PanicError {
	for i, err := range p.Also {
		if next, ok := err.(*PanicError); ok && next.isOurs() {
			return next.with(slices.Concat(p.Also[:i], p.Also[i+1:]), p.dropped)
		}
	}
	return nil
}

// noteCutOff notes that t, which has ended with v, only repeats why it was
// cancelled, in case the owner of t is a group that was dismissed.
func noteCutOff(t *task, v *verdict) {
	if g, gathers := t.owner.t.self.(gathering); gathers && tally.Same(v.cause, ErrDismissed) {
		g.cutOff(t.name())
	}
}

// failedLocked tells s, in which something has failed, if it is a group.
func failedLocked(s *scope) {
	if s.t.kind == kindGroup {
		s.t.self.(gathering).failedLocked()
	}
}

// tellObservers calls every observer from the inside out; what goes wrong in one of
// them is an error of s.
func tellObservers(s *scope, e Event) {
	for o := s.observers; o != nil; o = o.outer {
		if err := guard("observer", func() { o.o.Observe(e) }); err != nil {
			s.recordHookError(err)
		}
	}
}

// tellPanic tells the observers of a panic, once on its way up.
func tellPanic(s *scope, p *PanicError) {
	if s.observers != nil && p.of.observed.CompareAndSwap(false, true) {
		tellObservers(s, Event{Kind: EventPanic, Task: p.Task, Err: p})
	}
}

// tellEnd tells the observers that t has ended.
func tellEnd(t *task, v *verdict, sg *stopError) {
	if t.owner == nil || t.owner.observers == nil || t.more == nil || t.more.added().restart != nil {
		return
	}
	t.retire() // observers are no part of the handler
	tellObservers(t.owner, endEvent(t, v, sg))
}

func endEvent(t *task, v *verdict, sg *stopError) Event {
	e := Event{Kind: EventEnd, Task: t.name(), Duration: clock() - t.more.started, Err: v.err}
	if sg != nil {
		e.Cause = sg.cause
	}
	return e
}

// tellStart tells the observers that t starts.
func tellStart(t *task) {
	if t.owner.observers != nil && t.more.added().restart == nil { // they are told of its runs
		t.more.started = clock()
		tellObservers(t.owner, Event{Kind: EventStart, Task: t.name()})
	}
}
