package tree

import "github.com/ambit-go/ambit/async/internal/tally"

// This file ends scopes. The steps, in order:
//
//  1. returned, handlerFailed: the handler has come to its end. If it has failed, the scope is
//     cancelled.
//  2. join: until nothing that was started is left. Daemons are dismissed.
//  3. next: errors of futures that nobody was given become the scope's. The exit hooks are
//     run one after another, then values that nobody was given go to their discard hooks.
//  4. closeScope: from here on nothing can be started.
//  5. sumUp, Seal: the outcome is made, and the context is done.
//
// Hooks may start something, and so may a goroutine that nobody owns. So after each hook, and if
// closeScope finds something new, step 2 comes next. When step 4 has closed the scope, and settled
// promises, step 3 comes again until no value is left, and step 2 does not.

// End is called when t's handler has come to its end: it joins what the
// handler started, writes the outcome to v, and returns why t was cancelled.
func (t *Task) End(err error, v *Verdict) *StopError {
	if t.More != nil {
		HandlerReturned(t)
	}
	if t.Exit == ByGoexit {
		err = ErrGoexit
	}
	if t.Inner.Load() == nil {
		var stop *StopError
		switch {
		case err != nil:
			stop = StoppedByNow(t)
		case mayBeStopped(t):
			stop = t.Stopped()
		}
		// A goroutine that was given our context may make an inner scope just now.
		// Either it is first, and we go on with that scope, or it finds one that
		// has ended and refuses everything.
		if t.Inner.CompareAndSwap(nil, stop.endedScope()) { // nobody can start anything in t now
			if p := asPanic(t.Exit, err); p != nil {
				tellPanic(t.Owner, t, p)
			}
			v.Leaf(t, err, stop)
			return stop
		}
	}
	h := t.Inner.Load()
	h.Finish(t.Exit, err, v)
	return h.StopBeforeEnd()
}

// Finish ends s after its body or handler has: it joins everything, runs the
// exit hooks and writes the outcome to v. It blocks as long as that takes; only
// DetachAfter ends it before, with the outcome so far.
func (s *Scope) Finish(exit ExitKind, err error, v *Verdict) {
	HandlerReturned(s.Task)
	s.returned()
	var handler tally.HandlerEnd
	if err != nil { // before the join: it cancels what is waited for
		handler = handlerFailed(s, exit, err)
	}
	if s.opts != nil && s.opts.impatient != nil {
		s.opts.impatient.joins(s) // not before: what a failed handler leaves was told to stop
	}
	s.Conclude(handler, v)
}

// handlerFailed records that the handler or body of s has failed, and cancels s. It does
// neither if err is no failure: if it only repeats that s was cancelled, or is what a
// daemon, or what stands in one, has returned after the daemon was told to stop.
func handlerFailed(s *Scope, exit ExitKind, err error) tally.HandlerEnd {
	stop := StoppedByNow(s.Task)
	if exit == ByReturn && stop != nil && (IsEcho(err, stop) || InStoppedDaemon(s, stop.Cause)) {
		return tally.HandlerEnd{Echo: true, Owes: givesValue(s.Task), Said: stop.Said(err)}
	}
	v := Verdict{Err: err, Panic: asPanic(exit, err), Goexit: exit == ByGoexit}
	if v.Panic != nil {
		tellPanic(s, s.Task, v.Panic)
	}
	s.RecordOutcome(&v, false)
	return tally.HandlerEnd{}
}

// Conclude joins all that was started in s, whose handler has ended as handler
// says, ends s, and writes the outcome to v. Once s is closed nothing can fail in it any
// more but what still settles: see Unclaimed.late.
func (s *Scope) Conclude(handler tally.HandlerEnd, v *Verdict) {
	for closed, done := false, false; !done; {
		for !closed && !s.join() { // perhaps of what a hook or a bare goroutine has started
			if early := s.opts.impatient.leaveBehind(s, handler); early != nil {
				*v = *early
				return
			}
		}
		switch hook, value := s.next(); {
		case hook != nil:
			runExit(s, hook, handler)
		case value != nil:
			if s.Task.Kind != KindScope {
				s.Task.Retire() // the hook is no part of the handler
			}
			value.Discard()
		case closed:
			done = true
		default:
			closed = closeScope(s)
		}
	}
	sumUp(s, handler, v, true)
	Seal(s)
	s.Task.More.endStops(s.Task.Kind == KindFork)
}

// next makes failures of s of those errors that nobody was given, and takes what is to be
// done next at the end of s: the exit hook that was registered last or, if there is none, a
// value that nobody was given. Both are users' code, so it is run when s is not locked.
//
// Once s is closed this is the last look: what settles after it is late, and the root is
// told.
func (s *Scope) next() (hook *ExitHook, value *Unclaimed) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.summed = s.Ended
	if s.Tally != nil {
		s.Tally.TakeFailures(Unawaited)
		alarmLocked(s)
	}
	if hook = s.Exits; hook != nil {
		hook.unlistLocked()
	} else if e := s.Tally.TakeValue(); e != nil {
		value = e.Outcome.(*Unclaimed)
		value.state, value.instead = forfeited, ErrScopeEnded
	}
	return hook, value
}

// returned notes that the handler or body of s has come to its end: no abort
// hook is called from here on, and no slot is needed.
func (s *Scope) returned() {
	startMissedHook(s)
	// The step to joining is made under the lock under which an abort hook is
	// started: so a hook is started while the handler runs, or not at all.
	s.Mu.Lock()
	if s.Task.State.Load() < StateJoining { // a panic has come by here already
		s.Task.Move(StateJoining)
	}
	busy := s.Live > 0 || s.Exits != nil
	s.Mu.Unlock()
	if busy && s.Task.Kind != KindScope {
		s.Task.Retire()
	}
}

// startMissedHook starts the abort hook if the handler has returned so soon after
// its context was cancelled that the cancelling goroutine has not come to the hook
// yet. So whether the hook is called does not depend on which of the two is faster.
func startMissedHook(s *Scope) {
	if m := s.Task.More; m == nil || m.OnAbort == nil {
		return
	}
	if stop := s.Task.Stopped(); stop != nil {
		s.Cancel(stop)
	}
}

// closeScope marks s as ended unless something new has been started. From here on
// everything is refused, and promises are abandoned. The context is done soon after: see Seal.
func closeScope(s *Scope) bool {
	s.Mu.Lock()
	if s.Live > 0 || s.Exits != nil {
		s.Mu.Unlock()
		return false
	}
	// Whatever is started in s is added under this lock: it comes before and is
	// counted in Live, or after and finds Ended.
	s.Ended = true
	var promises []*Task // none can be added any more
	for p := s.promises; p != nil; p = p.next {
		promises = append(promises, p)
	}
	s.Mu.Unlock()
	for _, p := range promises {
		p.Self.Future().abandon()
	}
	return true
}
