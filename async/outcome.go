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
// function here is called with a lock held.

// A verdict is how a task or scope ended. It is handed around by pointer and
// written where it is needed in the end, because it ends every task: measured,
// by value it made stacks grow, which cost more than a task.
type verdict struct {
	err   error       // nil for success; what is given to a waiter
	panic *PanicError // set if it ended in a panic; err is, or lists, the same then
	cause error       // why its context was cancelled, if it was

	// echo: err says only that it was cancelled with cause. Whether it counts is
	// for the owner to say: only if the owner was cancelled with the same cause is
	// there nothing new in it, see isEcho.
	echo bool
	// alone: err says only what the handler has returned, or why it was cancelled;
	// nothing of what it has started. Only of that a daemon is excused.
	alone bool
	// goexit: it, or a task of it, called runtime.Goexit. err says so, too.
	goexit bool
	// partial: the value holds err already, as that of Settle does. A waiter gets
	// the value and no error, but if nobody is given it the scope gets err.
	partial bool
	// abandoned: it is a promise that was neither resolved nor rejected.
	abandoned bool

	value discarded // to be discarded if nobody is given it; nil without a discard hook
}

// asVerdict returns the verdict of an error of guard.
func asVerdict(err error) verdict {
	p, _ := err.(*PanicError)
	return verdict{err: err, panic: p}
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
	v.echo = !v.goexit && isEcho(err, sg)
	v.err = sg.beside(t, err, v.echo)
}

// beside returns what a task that was stopped with sg, and then returned err,
// gives to a waiter: an error that matches both.
func (sg *stopError) beside(t *task, err error, isEcho bool) error {
	switch {
	case isEcho && sg.says(err):
		return sg.asError()
	// It matches both as it is, because the handler has wrapped the cause: another
	// layer would only be in the way.
	case matches(err, sg.err) && matches(err, sg.cause):
		return err
	default:
		return &ScopeError{Scope: t.name(), Cause: sg.cause, Errors: []error{err}, stop: sg.err}
	}
}

// says reports whether err, an echo of sg, says nothing that sg does not.
func (sg *stopError) says(err error) bool {
	switch e := err.(type) {
	case *stopError:
		return tally.Same(e.cause, sg.cause)
	case *ScopeError:
		return e != nil && len(e.Errors) == 0 && e.Dropped == 0
	}
	return tally.Same(err, sg.err) || matches(sg.cause, err)
}

// matches is errors.Is for errors of users.
func matches(err, target error) bool {
	return asked(err, func() bool { return echo.Matches(err, target) })
}

// sumQuiet is sum for a scope of which there is no more to say than that it may
// have been cancelled; it reports false if there is. Measured, the frames of
// sum make the stacks of small tasks grow, which costs more than the task.
func (s *scope) sumQuiet(own ownEnd, v *verdict) bool {
	// Contexts are asked before the lock is taken: they may be a user's.
	sg := s.t.stopped()
	s.mu.Lock()
	quiet := s.tally == nil && s.returnedErr == nil
	s.mu.Unlock()
	switch {
	case !quiet, own.echo && (s.t.isScope() || own.err != context.Canceled || sg.err != context.Canceled):
		return false
	case own.echo:
		v.err, v.echo, v.alone = sg.asError(), true, true
	}
	if sg != nil {
		v.cause = sg.cause
	}
	return true
}

// sum writes to v how s has gone so far. own is how its handler or body ended. It
// changes nothing but v, so it may be asked before the end: for the exit hooks.
func (s *scope) sum(own ownEnd, v *verdict) {
	sg := s.untoldStop()
	s.mu.Lock()
	sum := s.sumLocked(own, sg, nil)
	s.mu.Unlock()
	s.oneError(own, sg, &sum, v)
}

// untoldStop returns why s was cancelled; nil if it was not, or if Scope has told of
// it and has returned without its tasks.
func (s *scope) untoldStop() *stopError {
	if s.returnedErr != nil {
		return nil
	}
	return s.t.stopped()
}

// sumLocked says which errors there are of s, which was stopped with sg. last, if it
// is not nil, is one more.
func (s *scope) sumLocked(own ownEnd, sg *stopError, last error) tally.Sum {
	var stop tally.Stop
	if sg != nil {
		stop.Cause = sg.cause
	}
	return s.tally.Sum(tally.Body{Echo: own.echo, Missed: own.echo && s.t.givesValue()}, stop, last)
}

// oneError writes to v the one error that is made of sum, with no lock held. These are
// the rules; the first that fits counts:
//   - A panic is the outcome. All else is attached to it; a ForkJoin lists it.
//   - Nothing went wrong: nil.
//   - A task that only repeats why it was cancelled says so in the words of that.
//   - One failure and nothing else is returned as it is.
//   - Else there is a ScopeError.
func (s *scope) oneError(own ownEnd, sg *stopError, sum *tally.Sum, v *verdict) {
	*v = verdict{echo: sum.Echo(), alone: sum.Echo(), goexit: sum.Goexit}
	if sg != nil {
		v.cause = sg.cause
	}
	if sum.Panic != nil {
		v.panic = sum.Panic.(*PanicError)
	}
	// words: the handler or body has said more than why it was stopped, though that
	// is no failure. ("while reading page 7: context canceled")
	words := own.echo && sum.Cause != nil && !sg.says(own.err)
	switch {
	case v.panic != nil && s.t.kind == kindFork: // the results tell of it, each with its own error
		v.err = joined(s.t, append([]error{v.panic}, sum.Errs...), sum.Dropped)
	case v.panic != nil:
		if words {
			sum.Errs = append(sum.Errs, own.err)
		}
		v.panic.attach(sum.Errs, sum.Dropped)
		v.err = v.panic
	case sum.Well():
	case v.echo && !s.t.isScope() && !words:
		v.err = sg.asError()
	case v.echo && !s.t.isScope():
		v.err = sg.beside(s.t, own.err, true)
	case len(sum.Errs) == 1 && sum.Cause == nil && sum.Dropped == 0:
		v.err = sum.Errs[0]
	default:
		e := &ScopeError{Scope: s.t.name(), Cause: sum.Cause, Errors: sum.Errs, Dropped: sum.Dropped}
		if words { // they are no failure, but nobody else tells them
			e.Errors, e.words = slices.Insert(e.Errors, 0, own.err), true
		}
		if sum.Cause != nil {
			e.stop = sg.err
		}
		v.err = e
	}
}

// fact writes to f what s, the owner of a task that ended with v, is to know of
// it: a classified fact, of which package tally can judge without calling methods
// of the error. f is the caller's, as verdicts are: it is made for every failure.
func (v *verdict) fact(s *scope, f *tally.Fact) {
	*f = tally.Fact{Err: v.err}
	list := v.listed()
	switch {
	case v.panic != nil:
		f.Class, f.Err = tally.Panic, v.panic
		if list != nil {
			f.Errs, f.Dropped = list.Errors, list.Dropped
		}
		return
	case v.goexit:
		f.Class = tally.Goexit
	case s.isEcho(v):
		f.Class = tally.Echo
		return
	}
	// The list of a scope inside s, which was cancelled with s: s tells the cause
	// itself, so of the list only the errors are taken over.
	if list != nil && list.Cause != nil && (list.Cause == ErrScopeDone || s.stoppedWith(list.Cause)) {
		f.Errs, f.Dropped = list.failures(), list.Dropped // the cause is the scope's own
	}
}

// stoppedWith reports whether s, or a scope around it, was cancelled with
// cause. When something further out was cancelled at the same time for another
// cause, a child may have heard of that first.
func (s *scope) stoppedWith(cause error) bool {
	for ; s != nil; s = s.t.owner {
		sg := s.t.stopped()
		if sg == nil {
			return false
		}
		if tally.Same(sg.cause, cause) {
			return true
		}
	}
	return false
}

// isEcho reports whether err says nothing but "I was told to stop", to a task
// that was stopped with sg.
func isEcho(err error, sg *stopError) bool {
	if sg == nil || tally.Same(err, sg.err) { // most often
		return sg != nil
	}
	return asked(err, func() bool { return echo.Is(err, sg.why(), sg.knows) })
}

func (sg *stopError) why() echo.Stop { return echo.Stop{Err: sg.err, Cause: sg.cause} }

// knows answers for errors of ours whether they are echoes of sg.
func (sg *stopError) knows(err error) (is, known bool) {
	switch e := err.(type) {
	case *stopError:
		return tally.Same(e.cause, sg.cause), true
	case *ScopeError:
		return e.onlyEchoes(sg), true
	case *TimeoutError, *PanicError, *StragglerError:
		return false, true // each says more than what it wraps
	case interface{ reason() error }: // a poll: what it was stopped by
		return e.reason() != nil && isEcho(e.reason(), sg), true
	}
	return false, false
}

// onlyEchoes reports whether all that e lists are echoes of sg.
func (e *ScopeError) onlyEchoes(sg *stopError) bool {
	if e == nil || e.Dropped > 0 || e.Cause != nil && !tally.Same(e.Cause, sg.cause) {
		return false
	}
	return e.Cause != nil && len(e.Errors) == 0 || echo.All(e.Errors, sg.why(), sg.knows)
}

// joined makes one error of several: nil, the only one, or a ScopeError. More than
// tally.Max are not kept, so that a million failures do not fill the memory.
func joined(t *task, errs []error, dropped int) error {
	switch {
	case len(errs) == 0 && dropped == 0:
		return nil
	case len(errs) == 1 && dropped == 0:
		return errs[0]
	}
	if n := len(errs) - tally.Max; n > 0 {
		errs, dropped = errs[:tally.Max], dropped+n
	}
	return &ScopeError{Scope: t.name(), Errors: errs, Dropped: dropped}
}
