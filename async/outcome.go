package async

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says how a task or scope ended, and tells a failure from an echo of
// its cancellation. Everything here may call methods of users' errors, so none
// of it is called with a lock held; what is told to whom is decided in package
// tally, which is given the classified facts.

// A verdict is how a task or scope ended. It is handed around by pointer and
// written where it is needed in the end, because it ends every task: measured,
// by value it made stacks grow, which cost more than a task.
type verdict struct {
	err   error       // nil for success; what is given to a waiter
	panic *PanicError // set if it ended in a panic; err is, or lists, the same then
	cause error       // why its context was cancelled, if it was

	echo      bool // err says only that it was cancelled with cause
	alone     bool // err says only what the handler has returned, or why it was cancelled
	goexit    bool // it, or a task of it, called runtime.Goexit
	partial   bool // the value holds err already: a waiter gets the value and no error
	abandoned bool // it is a promise that was neither resolved nor rejected

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

// mustRaise reports that v is too loud to be told as a timeout: only somebody
// who is given it has heard of it.
func (v *verdict) mustRaise() bool { return v.panic != nil || v.goexit }

// leaf writes the verdict of a task that never had an inner scope to v. sg is
// why its context was cancelled, nil if it was not.
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
func (sg *stopError) beside(t *task, err error, echo bool) error {
	switch {
	case echo && sg.says(err):
		return sg.told()
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
		return len(e.Errors) == 0 && e.Dropped == 0
	}
	return tally.Same(err, sg.err) || matches(sg.cause, err)
}

// sumQuiet is sum for a scope of which there is no more to say than that it may
// have been cancelled; it reports false if there is. Measured, the frames of
// sum make the stacks of small tasks grow, which costs more than the task.
func (s *scope) sumQuiet(own ownEnd, v *verdict) bool {
	sg := s.t.stopped()
	s.mu.Lock()
	quiet := s.tally == nil && s.returnedErr == nil
	s.mu.Unlock()
	switch {
	case !quiet, own.echo && (s.t.kind == kindBody || own.err != context.Canceled || sg.err != context.Canceled):
		return false
	case own.echo:
		v.err, v.echo, v.alone = sg.told(), true, true
	}
	if sg != nil {
		v.cause = sg.cause
	}
	return true
}

// sum writes to v how s has gone so far. own is how its handler or body ended,
// and last, if it is not nil, one more error.
func (s *scope) sum(own ownEnd, last error, v *verdict) {
	sg := s.t.stopped()
	var stop tally.Stop
	if sg != nil && s.returnedErr == nil { // else that has told of it
		stop.Cause = sg.cause
	}
	s.mu.Lock()
	sum := s.tally.Sum(tally.Body{Echo: own.echo}, stop, last)
	s.mu.Unlock()
	*v = verdict{cause: stop.Cause, echo: sum.Echo(), alone: sum.Echo(), goexit: sum.Goexit}
	if sum.Panic != nil {
		v.panic = sum.Panic.(*PanicError)
	}
	words := own.echo && sum.Cause != nil && !sg.says(own.err)
	switch {
	case v.panic != nil && s.t.kind == kindFork: // the results tell of it, each with its own error
		v.err = joined(s.t, append([]error{v.panic}, sum.Errs...), sum.Dropped)
	case v.panic != nil:
		v.panic.attach(sum.Errs, sum.Dropped)
		v.err = v.panic
	case sum.Well():
	case v.echo && s.t.kind != kindBody && !words:
		v.err = sg.told()
	case v.echo && s.t.kind != kindBody:
		v.err = sg.beside(s.t, own.err, true)
	case len(sum.Errs) == 1 && sum.Cause == nil && sum.Dropped == 0:
		v.err = sum.Errs[0]
	default:
		e := &ScopeError{Scope: s.t.name(), Cause: sum.Cause, Errors: sum.Errs, Dropped: sum.Dropped}
		if words { // they are no failure, but nobody else tells them
			e.Errors = slices.Insert(e.Errors, 0, own.err)
		}
		if sum.Cause != nil {
			e.stop = sg.err
		}
		v.err = e
	}
}

// fact writes to f what s, the owner of a task that ended with v, is to know of
// it.
func (v *verdict) fact(s *scope, f *tally.Fact) {
	*f = tally.Fact{Err: v.err}
	list, _ := v.err.(*ScopeError)
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
	if list != nil && list.Cause != nil && s.stoppedWith(list.Cause) {
		f.Errs, f.Dropped = list.Errors, list.Dropped // the cause is the scope's own
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
// that was stopped with sg: whether all that its Unwraps lead to is the error or
// the cause of that context, or an error of ours that holds only such.
func isEcho(err error, sg *stopError) bool {
	switch {
	case sg == nil:
		return false
	case tally.Same(err, sg.err), tally.Same(err, sg.cause):
		return true
	}
	return unwrapsToEcho(err, sg)
}

// unwrapsToEcho is isEcho for all but the simplest errors. It calls methods of
// users; one that panics leaves a failure.
func unwrapsToEcho(err error, sg *stopError) (echo bool) {
	defer func() { _ = recover() }()
	for {
		switch e := err.(type) {
		case *stopError:
			return tally.Same(e.cause, sg.cause)
		case *ScopeError:
			return e.onlyEchoes(sg)
		case *TimeoutError, *PanicError, *StragglerError:
			return false // each says more than what it wraps
		}
		if e, ok := err.(interface{ reason() error }); ok { // a poll: what it was stopped by
			return e.reason() != nil && isEcho(e.reason(), sg)
		}
		if e, ok := err.(interface{ Unwrap() []error }); ok {
			return allEchoes(e.Unwrap(), sg)
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return saysStopped(err, sg.err)
		}
		if err = inner; tally.Same(err, sg.err) || tally.Same(err, sg.cause) {
			return true
		}
	}
}

// allEchoes reports whether errs are echoes of sg and there is one.
func allEchoes(errs []error, sg *stopError) bool {
	return len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !isEcho(err, sg) })
}

// onlyEchoes reports whether all that e lists are echoes of sg.
func (e *ScopeError) onlyEchoes(sg *stopError) bool {
	if e.Dropped > 0 || e.Cause != nil && !tally.Same(e.Cause, sg.cause) {
		return false
	}
	return e.Cause != nil && len(e.Errors) == 0 || allEchoes(e.Errors, sg)
}

// saysStopped reports whether err is of a type of package net whose own Is
// matches the error of a context: its "operation was canceled" is a leaf.
func saysStopped(err, stop error) bool {
	is, ok := err.(interface{ Is(error) bool })
	if !ok {
		return false
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "net" && is.Is(stop)
}

// matches is errors.Is for errors of users: a method that panics, or a value
// that cannot be compared, is no match.
func matches(err, target error) (is bool) {
	if target == context.Canceled && err == target { // most often
		return true
	}
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// joined makes one error of several: nil, the only one, or a ScopeError.
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
