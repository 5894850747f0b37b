package async

import (
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
	if v.echo = !v.goexit && isEcho(err, sg); v.echo {
		err = sg.words(err)
	}
	v.err = sg.beside(t, err)
}

// of writes to v the outcome of t that is made of sum, of what was started in t, too.
// sg is why t was cancelled, nil if it was not. The first rule that fits counts:
//   - A panic is the outcome. All else is attached to it; a ForkJoin lists it, for its
//     results tell of it, each with its own error.
//   - A task that only repeats why it was cancelled says so in the words of that.
//   - Else it is the error that is made of all, if there is any.
func (v *verdict) of(t *task, sum *tally.Sum, sg *stopError) {
	*v = verdict{echo: sum.Echo(), alone: sum.Echo(), goexit: sum.Goexit, cause: sg.because()}
	v.panic, _ = sum.Panic.(*PanicError)
	switch {
	case v.panic != nil && t.kind == kindFork:
		v.err = joined(t, append([]error{v.panic}, sum.Errs...), sum.Dropped)
	case v.panic != nil:
		v.panic.attach(sum.List(), sum.Dropped)
		v.err = v.panic
	case v.echo && !t.isScope():
		v.err = sg.beside(t, sum.Words)
	default:
		v.err = oneError(t, sum, sg)
	}
}

// oneError makes one error of sum: nil, the only failure, or a ScopeError. sg is as in
// verdict.of.
func oneError(t *task, sum *tally.Sum, sg *stopError) error {
	if sum.Well() {
		return nil
	}
	if only := sum.Only(); only != nil {
		return only
	}
	e := &ScopeError{
		Scope: t.name(), Cause: sum.Cause, Errors: sum.List(), Dropped: sum.Dropped,
		words: sum.Words != nil,
	}
	if e.Cause != nil {
		e.stop = sg.err
	}
	return e
}

// joined makes one error of several.
func joined(t *task, errs []error, dropped int) error {
	sum := tally.Listed(errs, dropped)
	return oneError(t, &sum, nil)
}

// sum writes to v how s has gone so far. own is how its handler or body ended. It
// changes nothing but v, so it may be asked before the end: for the exit hooks.
//
// Most often there is no more to say than that s was cancelled. Measured, the frames
// of what follows make the stacks of small tasks grow, which costs more than the task.
func (s *scope) sum(own tally.Body, v *verdict) {
	sg := s.t.stopped() // before the lock is taken: contexts may be a user's
	s.mu.Lock()
	quiet := s.tally == nil
	s.mu.Unlock()
	switch {
	case !quiet, own.Echo && (s.t.isScope() || own.Words != nil):
		s.sumAll(own, sg, v)
		return
	case own.Echo:
		v.err, v.echo, v.alone = sg.asError(), true, true
	}
	v.cause = sg.because()
}

// sumAll is sum for a scope of which there is more to say. s was cancelled with sg.
func (s *scope) sumAll(own tally.Body, sg *stopError, v *verdict) {
	s.mu.Lock()
	sum := s.tally.Sum(own, sg.because(), nil)
	s.mu.Unlock()
	v.of(s.t, &sum, sg)
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
	if list != nil && s.hasTold(list.Cause) {
		f.Errs, f.Dropped = list.failures(), list.Dropped // the cause is the scope's own
	}
}

// hasTold reports whether s has told its tasks to stop for cause: it was cancelled, or
// has dismissed its daemons.
func (s *scope) hasTold(cause error) bool {
	return cause != nil && (cause == ErrScopeDone || s.stoppedWith(cause))
}

// stoppedWith reports whether s, or a scope around it, was cancelled with
// cause. When something further out was cancelled at the same time for another
// cause, a child may have heard of that first.
func (s *scope) stoppedWith(cause error) bool {
	for ; s != nil; s = s.t.owner {
		if sg := s.t.stopped(); sg == nil || tally.Same(sg.cause, cause) {
			return sg != nil
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
	return asked(err, func() bool { return echo.Is(err, echo.Stop{Err: sg.err, Cause: sg.cause}, saying) })
}

// words returns what err, of a task that was stopped with sg, says beside that; nil
// if it is nothing.
func (sg *stopError) words(err error) error {
	if tally.Same(err, sg.err) { // most often
		return nil
	}
	repeats := func() bool { return echo.Repeats(err, echo.Stop{Err: sg.err, Cause: sg.cause}, saying) }
	if asked(sg.cause, repeats) {
		return nil
	}
	return err
}

// beside returns what a task that was stopped with sg, and then returned err, gives
// to a waiter: an error that matches both. A nil err says nothing beside sg.
func (sg *stopError) beside(t *task, err error) error {
	switch {
	case err == nil:
		return sg.asError()
	// It matches both as it is, because the handler has wrapped the cause: another
	// layer would only be in the way.
	case matches(err, sg.err) && matches(err, sg.cause):
		return err
	default:
		return &ScopeError{Scope: t.name(), Cause: sg.cause, Errors: []error{err}, stop: sg.err}
	}
}

// matches is errors.Is for errors of users.
func matches(err, target error) bool {
	return asked(err, func() bool { return echo.Matches(err, target) })
}

// saying returns what err says, if it is of ours. A type of a user that embeds one of
// these is the user's.
func saying(err error) (says echo.Saying, ours bool) {
	switch e := err.(type) {
	case *stopError:
		return echo.Saying{Cause: e.cause}, true
	case *ScopeError:
		if e != nil && e.Dropped == 0 {
			return echo.Saying{Cause: e.Cause, Errs: e.Errors}, true
		}
	case interface{ reason() error }: // of a poll or a restart: what it was stopped by
		return echo.Saying{Errs: []error{e.reason()}}, true
	case *TimeoutError, *PanicError, *StragglerError:
	default:
		return echo.Saying{}, false
	}
	return echo.Saying{More: true}, true
}
