package async

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says how a task or scope ended: a handler's error goes in, and comes
// out as a verdict, which is what a waiter is given and what the owner is told.
//
// Whether an error only repeats a cancellation is asked of package echo. What a
// scope with several failures says in the end is decided by package tally; here
// an error is made of that. Package echo calls methods of users' errors, so no
// function here is called with a lock held, but those whose names end with Locked.

// asVerdict returns the verdict of an error of guard.
func asVerdict(err error) verdict {
	return verdict{err: err, panic: words.PanicIn(err)}
}

// answer returns the error for a waiter that is given the outcome.
func (v *verdict) answer() error {
	if v.partial {
		return nil
	}
	return v.err
}

// mustRaise reports that v is a panic or Goexit. Such an outcome counts as told
// only if somebody is given it: that a waiter was told of an expiry is not enough.
func (v *verdict) mustRaise() bool { return v.panic != nil || v.goexit }

// leaf writes the verdict of a task that never had an inner scope to v: nothing
// was started in it, so there is only what its handler has returned. sg is why its
// context was cancelled, nil if it was not. A panic is never an echo.
func (v *verdict) leaf(t *task, err error, sg *stopError) {
	if err == nil {
		return
	}
	v.err, v.panic, v.goexit, v.alone = err, asPanic(t.exit, err), t.exit == byGoexit, true
	if v.panic != nil || sg == nil {
		return
	}
	v.cause = sg.cause
	if v.echo = !v.goexit && isEcho(err, sg); v.echo {
		err = sg.said(err)
	}
	v.err = sg.beside(t, err)
}

// of writes to v the outcome of t that is made of sum, of what was started in t, too.
// sg is why t was cancelled, nil if it was not. The first rule that fits counts:
//   - A panic is the outcome, with all else beside it. A ForkJoin lists it, for its
//     results tell of it, each with its own error.
//   - A task that only repeats why it was cancelled says so in the words of that.
//   - Else it is the error that is made of all, if there is any.
func (v *verdict) of(t *task, sum *tally.Sum, sg *stopError) {
	*v = verdict{echo: sum.Echo(), alone: sum.Echo(), goexit: sum.Goexit, cause: sg.because()}
	v.panic = words.PanicIn(sum.Panic)
	switch {
	case v.panic != nil && t.kind == kindFork:
		v.err = joined(t, append([]error{v.panic.asError()}, sum.Errs...), sum.Dropped)
	case v.panic != nil:
		if !v.panic.raised { // else it was told with what went wrong in the scope that raised it
			also, _ := withPaths(sum.Errs)
			v.panic = v.panic.with(also, sum.Dropped)
		}
		v.err = v.panic.asError()
	case v.echo && !t.isScope() && len(sum.Texts) == 0:
		v.err = sg.beside(t, sum.Said)
	default:
		v.err = oneError(t, sum, sg)
	}
}

// oneError makes one error of sum: nil, the only failure, or a list. sg is as in
// verdict.of.
func oneError(t *task, sum *tally.Sum, sg *stopError) error {
	if sum.Well() {
		return nil
	}
	if only := sum.Only(); only != nil {
		return withoutPath(only)
	}
	l := &listing{scope: t.name(), cause: sum.Cause, dropped: sum.Dropped}
	l.errs, l.paths = withPaths(sum.Errs)
	l.stopped, l.droppedStopped = texts(sum, sg)
	if sum.Said != nil && !t.isScope() && len(sum.Errs) == 0 && isEcho(sum.Said, sg) {
		// As sg.beside does: who waits for the task is given what its handler has returned.
		l.errs = []error{sum.Said}
		l.stopped = slices.DeleteFunc(l.stopped, func(err error) bool { return tally.Same(err, sum.Said) })
	}
	if sum.Said != nil && !t.isScope() && !isEcho(sum.Said, sg) {
		l.said = sum.Said
	}
	if l.cause != nil {
		l.stop, l.own = sg.err, sg.own
	}
	return l.asError()
}

// joined makes one error of several.
func joined(t *task, errs []error, dropped int) error {
	sum := tally.Listed(errs, dropped)
	return oneError(t, &sum, nil)
}

// sumUp writes to v how s has gone so far. own is how its handler or body ended. It
// changes nothing but v, so it may be asked before the end: for the exit hooks.
//
// more: something has gone wrong in s, or was said. Most often there is no more to say than
// that s was cancelled. Measured, the frames
// of what follows make the stacks of small tasks grow, which costs more than the task.
func sumUp(s *scope, own tally.Body, v *verdict) (more bool) {
	sg := s.t.stopped() // before the lock is taken: contexts may be a user's
	s.mu.Lock()
	quiet := s.tally == nil
	s.mu.Unlock()
	switch {
	case !quiet, own.Echo && (s.t.isScope() || own.Said != nil):
		sumAll(s, own, sg, v)
		return true
	case own.Echo:
		v.err, v.echo, v.alone = sg.asError(), true, true
	}
	v.cause = sg.because()
	return false
}

// sumAll is sumUp for a scope of which there is more to say. s was cancelled with sg.
func sumAll(s *scope, own tally.Body, sg *stopError, v *verdict) {
	s.mu.Lock()
	sum := s.tally.Sum(endLocked(s, own, sg))
	s.mu.Unlock()
	if sum.Cause != nil && broughtOn(s, sg) {
		sg = &stopError{err: sg.err, cause: sg.cause, own: true}
	}
	v.of(s.t, &sum, sg)
}

// endLocked returns what the tally of s, which was cancelled with sg, is to know of
// the end of s.
func endLocked(s *scope, own tally.Body, sg *stopError) tally.End {
	cause := sg.because()
	return tally.End{Body: own, Cause: cause, Led: s.led && tally.Same(cause, errDismissed)}
}

// fact writes to f what s, the owner of a task that ended with v, is to know of
// it: a classified fact, of which package tally can judge without calling methods
// of the error. f is the caller's, as verdicts are: it is made for every failure.
func (v *verdict) fact(s *scope, f *tally.Fact) {
	*f = tally.Fact{Err: v.err}
	list := v.listed()
	switch {
	case v.panic != nil:
		f.Class, f.Err = tally.Panic, v.panic.asError()
		switch {
		case list != nil:
			f.Errs, f.Dropped = list.errs, list.dropped
		case !v.panic.raised:
			f.Errs, f.Dropped = v.panic.also, v.panic.dropped
		}
		return
	case v.goexit:
		f.Class = tally.Goexit
	case repeatsStop(s, v), v.alone && inStoppedDaemon(s, v.cause):
		f.Class = tally.Echo
		stop := echo.Stop{Err: context.Canceled, Cause: v.cause}
		if sg := s.t.stopped(); sg != nil {
			stop.Err = sg.err
		}
		f.Texts, f.TextsDropped = textsIn(v.err, stop)
		return
	}
	// The list of a scope inside s, which was cancelled with s: s tells the cause
	// itself, so of the list only the errors are taken over, and the texts.
	if list != nil && hasTold(s, list.cause) {
		f.Errs, f.Dropped, f.Texts, f.TextsDropped = failuresOf(list), list.dropped, list.stopped, list.droppedStopped
	}
}

// hasTold reports whether s has told its tasks to stop for cause: it was cancelled, or
// has dismissed its daemons.
func hasTold(s *scope, cause error) bool {
	return cause != nil && (cause == errDismissed || stoppedWith(s, cause))
}

// stoppedWith reports whether s, or a scope around it, was cancelled with
// cause. When something further out was cancelled at the same time for another
// cause, a child may have heard of that first.
func stoppedWith(s *scope, cause error) bool {
	for ; s != nil; s = s.t.owner {
		if sg := s.t.stopped(); sg == nil || tally.Same(sg.cause, cause) {
			return sg != nil
		}
	}
	return false
}

// broughtOn reports whether s was cancelled with sg for something of its own:
// a failure inside, its time limit, or what watches it.
func broughtOn(s *scope, sg *stopError) bool {
	s.mu.Lock()
	own := s.tally.Own(sg.cause)
	s.mu.Unlock()
	if own {
		return true
	}
	_, limit := words.LimitIn(sg.cause)
	return (limit || words.Is(sg.cause, missedSign)) && !inheritedCause(s.t, sg.cause)
}

// inheritedCause reports whether anything around t was cancelled with cause.
func inheritedCause(t *task, cause error) bool {
	sg := t.stoppedFromAbove()
	return sg != nil && tally.Same(sg.cause, cause)
}

// repeatsStop reports that a child's outcome only repeats that s was cancelled.
func repeatsStop(s *scope, v *verdict) bool { return v.echo && stoppedWith(s, v.cause) }

// stoppedDaemon reports whether t is a daemon that its owner has told to stop for cause:
// the owner has dismissed t, or was cancelled. What the handler of t returns then is how
// services stop, and no failure.
func stoppedDaemon(t *task, cause error) bool {
	if cause == nil || t.more == nil || !t.more.daemon {
		return false
	}
	return tally.Same(cause, errDismissed) && isDismissed(t) || stoppedWith(t.owner, cause)
}

// isDismissed reports whether the owner of t, which has more, has told t that the others
// have ended.
func isDismissed(t *task) bool {
	t.owner.mu.Lock()
	defer t.owner.mu.Unlock()
	return t.more.dismissed
}

// inStoppedDaemon reports whether s is, or stands in, a daemon that its owner has told to
// stop for cause. A handler in s that was cancelled for that cause stops as the daemon does.
func inStoppedDaemon(s *scope, cause error) bool {
	if cause == nil {
		return false
	}
	for t := s.t; t.owner != nil; t = t.owner.t {
		if stoppedDaemon(t, cause) {
			return true
		}
	}
	return false
}

// noteQuiet notes in f, of t which has ended with v, whether t is a daemon that has only
// stopped as it was told to. What it has said beside that is not lost.
func noteQuiet(t *task, v *verdict, f *tally.Fact) {
	f.Quiet = v.alone && stoppedDaemon(t, v.cause)
	if f.Quiet && v.echo && f.Class == tally.Failure {
		f.Class, f.Errs = tally.Echo, nil
		f.Texts, f.TextsDropped = textsIn(v.err, echo.Stop{Err: context.Canceled, Cause: v.cause})
	}
}

// givesValue reports whether somebody is to be given what the handler of t returns
// beside an error.
func givesValue(t *task) bool {
	switch t.kind {
	case kindRun:
		return givesValue(t.owner.t)
	case kindFuture, kindContender, kindWorker:
		return !t.self.(interface{ givesNothing() bool }).givesNothing()
	}
	return false
}
