package tree

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says how a task or scope ended: a handler's error goes in, and comes
// out as a verdict, which is what a waiter is given and what the owner is told.
//
// Whether an error only repeats a cancellation is asked of package echo. The outcome of a scope
// with several failures is decided by package tally; here an error is made of that. Package echo
// calls methods of users' errors, so no function here is called with a lock held, but those whose
// names end with Locked.

// AsVerdict returns the verdict of an error of Guard.
func AsVerdict(err error) Verdict {
	return Verdict{Err: err, Panic: Codec.PanicIn(err)}
}

// answer returns the error for a waiter that is given the outcome.
func (v *Verdict) answer() error {
	if v.Partial {
		return nil
	}
	return v.Err
}

// MustRaise reports that v is a panic or Goexit. Such an outcome counts as told
// only if somebody is given it: that a waiter was told of an expiry is not enough.
func (v *Verdict) MustRaise() bool { return v.Panic != nil || v.Goexit }

// Leaf writes the verdict of a task that never had an inner scope to v: nothing
// was started in it, so there is only what its handler has returned. stop is why its
// context was cancelled, nil if it was not. A panic is never an echo.
func (v *Verdict) Leaf(t *Task, err error, stop *StopError) {
	if err == nil {
		return
	}
	v.Err, v.Panic, v.Goexit, v.alone = err, asPanic(t.Exit, err), t.Exit == ByGoexit, true
	if v.Panic != nil || stop == nil {
		return
	}
	v.Cause = stop.Cause
	if v.Echo = !v.Goexit && IsEcho(err, stop); v.Echo {
		err = stop.Said(err)
		v.bare = err == nil
	}
	v.Err = stop.beside(t, err)
}

// fromSum writes to v the outcome of t that is made of sum, of what was started in t, too.
// stop is why t was cancelled, nil if it was not. The first rule that fits counts:
//   - A panic is the outcome, with all else beside it. A ForkJoin lists it, for its
//     results tell of it, each with its own error.
//   - A task that only repeats why it was cancelled says so with the error of that.
//   - Else it is the error that is made of all, if there is any.
func (v *Verdict) fromSum(t *Task, sum *tally.Sum, stop *StopError) {
	*v = Verdict{Echo: sum.Echo(), alone: sum.Echo(), Goexit: sum.Goexit, Cause: stop.because()}
	v.Panic = Codec.PanicIn(sum.Panic)
	switch {
	case v.Panic != nil && t.Kind == KindFork:
		v.Err = Joined(t, append([]error{v.Panic.AsError()}, sum.Errs...), sum.Dropped)
	case v.Panic != nil:
		if !v.Panic.Raised { // else it was told with what went wrong in the scope that raised it
			also, _ := WithPaths(sum.Errs)
			v.Panic = v.Panic.with(also, sum.Dropped)
		}
		v.Err = v.Panic.AsError()
	case v.Echo && !t.isScopeOrGroup() && len(sum.Texts) == 0:
		v.Err = stop.beside(t, sum.Said)
	default:
		v.Err = oneError(t, sum, stop)
	}
}

// oneError makes one error of sum: nil, the only failure, or a list. stop is as in
// Verdict.fromSum.
func oneError(t *Task, sum *tally.Sum, stop *StopError) error {
	if sum.Well() {
		return nil
	}
	if only := sum.Only(); only != nil {
		return withoutPath(only)
	}
	l := &Listing{Scope: t.Name(), Cause: sum.Cause, Dropped: sum.Dropped}
	l.Errs, l.Paths = WithPaths(sum.Errs)
	l.Stopped, l.DroppedStopped = texts(sum, stop)
	if sum.Said != nil && !t.isScopeOrGroup() && len(sum.Errs) == 0 && IsEcho(sum.Said, stop) {
		// As stop.beside does: who waits for the task is given what its handler has returned.
		l.Errs = []error{sum.Said}
		l.Stopped = slices.DeleteFunc(l.Stopped, func(err error) bool { return tally.Same(err, sum.Said) })
	}
	if sum.Said != nil && !t.isScopeOrGroup() && !IsEcho(sum.Said, stop) {
		l.Said = sum.Said
	}
	if l.Cause != nil {
		l.Stop, l.FromInside = stop.Err, stop.fromInside
	}
	return l.asError()
}

// Joined makes one error of several.
func Joined(t *Task, errs []error, dropped int) error {
	sum := tally.Listed(errs, dropped)
	return oneError(t, &sum, nil)
}

// sumUp writes to v how s has gone so far. handler is how its handler ended. It
// changes nothing but v, so it may be asked before the end: for the exit hooks. At the end,
// last, the root is told what v does not hold.
//
// Most often there is no more to say than that s was cancelled. Measured, the frames of
// sumAll make the stacks of small tasks grow, which costs more than the task.
func sumUp(s *Scope, handler tally.HandlerEnd, v *Verdict, last bool) {
	stop := s.Task.Stopped() // before the lock is taken: contexts may be a user's
	s.Mu.Lock()
	quiet := s.Tally == nil
	s.Mu.Unlock()
	switch {
	case !quiet, handler.Echo && (s.Task.isScopeOrGroup() || handler.Said != nil):
		sumAll(s, handler, stop, v, last)
		return
	case handler.Echo:
		v.Err, v.Echo, v.bare, v.alone = stop.AsError(), true, true, true
	}
	v.Cause = stop.because()
}

// sumAll is sumUp for a scope of which there is more to say. s was cancelled with stop.
func sumAll(s *Scope, handler tally.HandlerEnd, stop *StopError, v *Verdict, last bool) {
	s.Mu.Lock()
	sum := s.Tally.Sum(endLocked(s, handler, stop))
	s.Mu.Unlock()
	said := stop
	if sum.Cause != nil && causedInside(s, stop) {
		said = &StopError{Err: stop.Err, Cause: stop.Cause, fromInside: true}
	}
	v.fromSum(s.Task, &sum, said)
	if last {
		tellRest(s, &sum, stop, v)
	}
}

// tellRest has the root told what v, the outcome of s, which is made of sum, does not hold:
// what was said beside a cancellation with stop if s has ended well or with a panic, and what
// else went wrong if s passes on a panic that a scope further in has raised, for that is not
// changed any more.
func tellRest(s *Scope, sum *tally.Sum, stop *StopError, v *Verdict) {
	if v.Err != nil && v.Panic == nil {
		return
	}
	if v.Panic != nil && v.Panic.Raised {
		if err := oneError(s.Task, &tally.Sum{Errs: sum.Errs, Dropped: sum.Dropped}, nil); err != nil {
			s.Home.Report(err)
		}
	}
	if all, dropped := texts(sum, stop); len(all)+dropped > 0 {
		s.Home.Said((&Listing{Scope: s.Task.Name(), Stopped: all, DroppedStopped: dropped}).asError().Error())
	}
}

// endLocked returns what the tally of s, which was cancelled with stop, is to know of
// the end of s.
func endLocked(s *Scope, handler tally.HandlerEnd, stop *StopError) tally.End {
	cause := stop.because()
	return tally.End{Handler: handler, Cause: cause, Led: s.led && tally.Same(cause, ErrDismissed)}
}

// fact writes to f what s is to know of t, a member of s that has ended with v, or of its own
// handler, if t is nil: a classified fact, of which package tally can judge without calling
// methods of the error. f is the caller's, as verdicts are: it is made for every failure.
//
// A daemon that was told to stop is quiet, whatever it returns then. Only a text of its own is
// told, if it repeats with that why it was stopped.
func (v *Verdict) fact(s *Scope, t *Task, f *tally.Fact) {
	told := v.alone && v.Cause != nil // to stop, and nothing that it has started has failed
	*f = tally.Fact{Err: v.Err, Quiet: told && t != nil && stoppedDaemon(t, v.Cause)}
	list := v.Listed()
	switch {
	case v.Panic != nil:
		f.Class, f.Err = tally.Panic, v.Panic.AsError()
		switch {
		case list != nil:
			f.Errs, f.Dropped = list.Errs, list.Dropped
		case !v.Panic.Raised:
			f.Errs, f.Dropped = v.Panic.Also, v.Panic.Dropped
		}
		return
	case v.Goexit:
		f.Class = tally.Goexit
	case v.Echo && (f.Quiet || StoppedWith(s, v.Cause)), told && InStoppedDaemon(s, v.Cause):
		f.Class = tally.Echo
		if v.bare {
			return
		}
		echoed := echo.Stop{Err: context.Canceled, Cause: v.Cause}
		if stop := s.Task.Stopped(); stop != nil && tally.Same(stop.Cause, v.Cause) {
			echoed.Err = stop.Err
		}
		f.Texts, f.TextsDropped = TextsIn(v.Err, echoed)
		return
	}
	// The list of a scope inside s, which was cancelled with s: s tells the cause
	// itself, so of the list only the errors are taken over, and the texts.
	if list != nil && hasTold(s, list.Cause) {
		f.Errs, f.Dropped, f.Texts, f.TextsDropped = failuresOf(list), list.Dropped, list.Stopped, list.DroppedStopped
	}
}

// hasTold reports whether s has told its tasks to stop for cause: it was cancelled, or
// has dismissed its daemons.
func hasTold(s *Scope, cause error) bool {
	return cause != nil && (cause == ErrDismissed || StoppedWith(s, cause))
}

// StoppedWith reports whether s, or a scope around it, was cancelled with
// cause. When something further out was cancelled at the same time for another
// cause, a child may have heard of that first.
func StoppedWith(s *Scope, cause error) bool {
	for ; s != nil; s = s.Task.Owner {
		if stop := s.Task.Stopped(); stop == nil || tally.Same(stop.Cause, cause) {
			return stop != nil
		}
	}
	return false
}

// causedInside reports whether s was cancelled with stop for something of its own:
// a failure inside, its time limit, or what watches it.
func causedInside(s *Scope, stop *StopError) bool {
	s.Mu.Lock()
	inside := s.Tally.FromInside(stop.Cause)
	s.Mu.Unlock()
	if inside {
		return true
	}
	_, limit := Codec.LimitIn(stop.Cause)
	return (limit || Codec.Is(stop.Cause, MissedSign)) && !inheritedCause(s.Task, stop.Cause)
}

// inheritedCause reports whether anything around t was cancelled with cause.
func inheritedCause(t *Task, cause error) bool {
	stop := t.stoppedFromAbove()
	return stop != nil && tally.Same(stop.Cause, cause)
}

// stoppedDaemon reports whether t is a daemon that its owner has told to stop for cause:
// the owner has dismissed t, or was cancelled. An error that the handler of t returns then is how
// services stop, and no failure.
func stoppedDaemon(t *Task, cause error) bool {
	if cause == nil || t.More == nil || !t.More.Daemon {
		return false
	}
	return tally.Same(cause, ErrDismissed) && isDismissed(t) || StoppedWith(t.Owner, cause)
}

// isDismissed reports whether the owner of t, which has a More, has told t that the others
// have ended.
func isDismissed(t *Task) bool {
	t.Owner.Mu.Lock()
	defer t.Owner.Mu.Unlock()
	return t.More.dismissed
}

// InStoppedDaemon reports whether s is, or stands in, a daemon that its owner has told to
// stop for cause. A handler in s that was cancelled for that cause stops as the daemon does.
func InStoppedDaemon(s *Scope, cause error) bool {
	if cause == nil {
		return false
	}
	for t := s.Task; t.Owner != nil; t = t.Owner.Task {
		if stoppedDaemon(t, cause) {
			return true
		}
	}
	return false
}

// givesValue reports whether somebody is to be given what the handler of t returns
// beside an error.
func givesValue(t *Task) bool {
	switch t.Kind {
	case KindRun:
		return givesValue(t.Owner.Task)
	case KindFuture, KindContender, KindWorker:
		return !t.Self.(interface{ GivesNothing() bool }).GivesNothing()
	}
	return false
}

// Echoes returns how t has ended whose tasks have all only repeated why they were cancelled, and some of
// them with a text besides: with the texts of all.
func Echoes(t *Task, all []*Verdict) Verdict {
	v := *all[0]
	var texts []error
	for _, one := range all {
		if !one.bare {
			texts = append(texts, one.Err)
		}
	}
	if len(texts) > 0 {
		v.Err, v.bare = Joined(t, texts, 0), false
	}
	return v
}
