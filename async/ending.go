package async

import "github.com/ambit-go/ambit/async/internal/tally"

// This file ends scopes. The steps, in order:
//
//  1. returned: the handler or body has come to its end.
//  2. join: until nothing that was started is left. Daemons are dismissed.
//  3. takeUnclaimed: errors of futures that nobody was given become the scope's.
//  4. runExits: the exit hooks.
//  5. discardUnclaimed: values that nobody was given go to their discard hooks.
//  6. closeScope: from here on nothing can be started.
//  7. sumUp, tellRest, seal: the outcome is made, and the context is done.
//
// Hooks may start something, and so may a goroutine that nobody owns. So after 4
// or 5, if there was anything to do, and if close finds something new, step 2
// comes next.

// end is called when t's handler has come to its end: it joins what the
// handler started, writes the outcome to v, and returns why t was cancelled.
func (t *task) end(err error, v *verdict) *stopError {
	if t.exit == byGoexit {
		err = errGoexit
	}
	if t.inner.Load() == nil {
		var sg *stopError
		if err != nil || mayBeStopped(t) {
			sg = t.stopped()
		}
		// A goroutine that was given our context may make an inner scope just now.
		// Either it is first, and we go on with that scope, or it finds one that
		// has ended and refuses everything.
		if t.inner.CompareAndSwap(nil, sg.endedScope()) { // nobody can start anything in t now
			if p := asPanic(t.exit, err); p != nil {
				tellPanic(t.owner, p)
			}
			v.leaf(t, err, sg)
			return sg
		}
	}
	h := t.inner.Load()
	h.finish(t.exit, err, v)
	return h.signal()
}

// finish ends s after its body or handler has: it joins everything, runs the
// exit hooks and writes the outcome to v. It blocks as long as that takes; only
// DetachAfter ends it before, with the outcome so far.
func (s *scope) finish(exit exitKind, err error, v *verdict) {
	s.returned()
	var own tally.Body
	if err != nil { // before the join: it cancels what is waited for
		own = ownFailed(s, exit, err)
	}
	s.conclude(own, v)
}

// ownFailed records that the handler or body of s has failed, and cancels s. It does
// neither if err is no failure: if it only repeats that s was cancelled, or is what a
// daemon, or what stands in one, has returned after the daemon was told to stop.
func ownFailed(s *scope, exit exitKind, err error) tally.Body {
	sg := s.t.stopped()
	if exit == byReturn && sg != nil && (isEcho(err, sg) || inStoppedDaemon(s, sg.cause)) {
		return tally.Body{Echo: true, Owes: givesValue(s.t), Said: sg.said(err)}
	}
	v := verdict{err: err, panic: asPanic(exit, err), goexit: exit == byGoexit}
	if v.panic != nil {
		tellPanic(s, v.panic)
	}
	s.recordOutcome(&v, false)
	return tally.Body{}
}

// conclude joins all that was started in s, whose handler or body has ended as own
// says, ends s, and writes the outcome to v. Once s is closed nothing can fail in it any
// more but what still settles: see unclaimed.late.
func (s *scope) conclude(own tally.Body, v *verdict) {
	for again := true; again; again = runExits(s, own) || discardUnclaimed(s) || !closeScope(s) {
		for !s.join() { // perhaps of what a hook or a bare goroutine has started
			if early := s.opts.impatient.abandon(s, own); early != nil {
				*v = *early
				return
			}
		}
		takeUnclaimed(s)
	}
	takeUnclaimed(s) // of promises that were rejected or resolved meanwhile
	discardUnclaimed(s)
	if sumUp(s, own, v) {
		tellRest(s, own, v)
	}
	seal(s)
	s.t.more.endStops(s.t.kind == kindFork)
}

// tellRest has the root told what the outcome of s does not hold: what was said
// beside a cancellation if s has ended well or with a panic, and what else went wrong if
// s passes on a panic that a scope further in has raised, for that is not changed any
// more.
func tellRest(s *scope, own tally.Body, v *verdict) {
	if v.err != nil && v.panic == nil {
		return
	}
	sg := s.t.stopped()
	s.mu.Lock()
	sum := s.tally.Sum(endLocked(s, own, sg))
	s.mu.Unlock()
	tellRestOf(s, &sum, sg, v)
}

// tellRestOf is tellRest for what is summed up in sum.
func tellRestOf(s *scope, sum *tally.Sum, sg *stopError, v *verdict) {
	if v.err != nil && v.panic == nil {
		return
	}
	if v.panic != nil && v.panic.raised {
		if err := oneError(s.t, &tally.Sum{Errs: sum.Errs, Dropped: sum.Dropped}, nil); err != nil {
			s.home.report(err)
		}
	}
	if all, dropped := texts(sum, sg); len(all)+dropped > 0 {
		s.home.said((&listing{scope: s.t.name(), stopped: all, droppedStopped: dropped}).asError().Error())
	}
}

// returned notes that the handler or body of s has come to its end: no abort
// hook is called from here on, and no slot is needed.
func (s *scope) returned() {
	startMissedHook(s)
	// The step to joining is made under the lock under which an abort hook is
	// started: so a hook is started while the handler runs, or not at all.
	s.mu.Lock()
	if s.t.state.Load() < stateJoining { // a panic has come by here already
		s.t.move(stateJoining)
	}
	busy := s.live > 0 || s.exits != nil
	s.mu.Unlock()
	if busy && s.t.kind != kindBody {
		s.t.retire()
	}
	if busy {
		if s.opts != nil && s.opts.impatient != nil {
			s.opts.impatient.joins(s)
		}
	}
}

// startMissedHook starts the abort hook if the handler has returned so soon after
// its context was cancelled that the cancelling goroutine has not come to the hook
// yet. So whether the hook is called does not depend on which of the two is faster.
func startMissedHook(s *scope) {
	if m := s.t.more; m == nil || m.onAbort == nil {
		return
	}
	if sg := s.t.stopped(); sg != nil {
		s.cancel(sg)
	}
}

// closeScope marks s as ended unless something new has been started. From here on
// everything is refused, promises are abandoned and the context is done.
func closeScope(s *scope) bool {
	s.mu.Lock()
	if s.live > 0 || s.exits != nil {
		s.mu.Unlock()
		return false
	}
	// Whatever is started in s is added under this lock: it comes before and is
	// counted in live, or after and finds ended.
	s.ended = true
	var promises []*task // none can be added any more
	for p := s.promises; p != nil; p = p.next {
		promises = append(promises, p)
	}
	s.mu.Unlock()
	for _, p := range promises {
		p.self.(promised).abandon()
	}
	return true
}
