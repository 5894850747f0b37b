package tree

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says whether the context of a task or scope is done, and why. Nothing follows from
// the answer, but that a scope may note it in Scope.Why: what was said once is said on.

// derived returns the ctx that t was started with if that decides alone when
// t's context is cancelled; nil if that is cancelled with the owner's, or if t
// is shielded.
func (t *Task) derived() context.Context {
	if m := t.More; m != nil && m.derived {
		return m.Origin.values
	}
	return nil
}

// cancelledWithOwner reports whether a cancellation of t's owner is one of t.
func (t *Task) cancelledWithOwner() bool {
	return t.More == nil || !t.More.derived && !t.More.shielded
}

// Stopped returns why t's context is done, nil while it is not.
//
// If the inner scope was made while we asked the owner, that scope answers: a
// cancellation of the owner may not have come to it yet, and then its answer,
// and every later one until then, is no.
func (t *Task) Stopped() *StopError {
	s := t.Inner.Load()
	if s == nil {
		stop := t.stoppedFromAbove()
		if stop == nil {
			return nil
		}
		if s = t.Inner.Load(); s == nil {
			return stop
		}
	}
	return s.stopped()
}

// mayBeStopped reports false if t is certainly not stopped: the short way for small tasks,
// whose stacks grow by the frames of stopped.
func mayBeStopped(t *Task) bool {
	o := t.Owner
	return t.More != nil || o.from.task != nil || o.Why.Load() != nil || o.std.Load() != nil || o.young.Load()
}

// stoppedFromAbove looks for a cancellation in what t's context is a child of.
func (t *Task) stoppedFromAbove() *StopError {
	if ctx := t.derived(); ctx != nil {
		return StopOf(ctx)
	}
	if t.Owner == nil || !t.cancelledWithOwner() {
		return nil
	}
	return t.Owner.stopped()
}

// stopped returns why the context of s is done, nil while it is not. An answer is given again from
// then on, though the cancellation may not have been passed on yet: see Scope.Why.
func (s *Scope) stopped() *StopError {
	stop := s.Why.Load()
	if stop == nil && (s.young.Load() || s.isStopped()) {
		if stop = s.stoppedAround(); stop != nil {
			s.Why.CompareAndSwap(nil, stop)
		}
		stop = s.Why.Load() // also what the maker of a young scope has noted meanwhile
	}
	return stop
}

// isStopped reports whether anything says that the context of s is done, where
// s itself has not noted it. There are two places to look: the standard context
// of s, and the nearest task that can be cancelled by something else than our
// own walk. It is one flat function because every start and every wait asks:
// measured, three calls more made the stacks of small tasks grow, which cost
// more than the rest of a start.
func (s *Scope) isStopped() bool {
	if std := s.std.Load(); std != nil {
		return std.Err() != nil // it is a child of the nearest such task: it knows
	}
	t := s.Task
	if t.Owner != nil && t.cancelledWithOwner() {
		t = t.Owner.from.task
		if t == nil {
			return false
		}
		h := t.Inner.Load() // it has a scope, which we are in
		if h.Why.Load() != nil {
			return true
		}
		if std := h.std.Load(); std != nil {
			return std.Err() != nil
		}
	}
	ctx := t.derived()
	return ctx != nil && ctx.Err() != nil
}

// stoppedAround returns why the context of s is done, after isStopped.
//
// If the nearest task that can be cancelled by something else is, everything
// between it and s is, too. But one of those may have been cancelled before, for
// another cause, and the walk from there has not come to us. Then that cause
// counts for all below: so the owner is asked, which asks its owner, and each
// notes what it has said.
func (s *Scope) stoppedAround() *StopError {
	t := s.Task
	if s.young.Load() {
		if stop := t.stoppedFromAbove(); stop != nil {
			return stop
		}
	}
	var stop *StopError
	if std := s.std.Load(); std != nil {
		var above *StopError // what the owner has noted so far, if its cancellation is one of t
		if t.Owner != nil && t.cancelledWithOwner() {
			above = t.Owner.Why.Load()
		}
		if above != nil && above.Err == std.Err() && tally.Same(above.Cause, context.Cause(std.Context)) {
			return above // most often: there is no need for another
		}
		stop = StopOf(std.Context)
	}
	if t.Owner == nil || !t.cancelledWithOwner() {
		if ctx := t.derived(); ctx != nil && stop == nil {
			return StopOf(ctx)
		}
		return stop
	}
	nearest := t.Owner.from.task
	if nearest == nil {
		return stop
	}
	above := nearest.Inner.Load().stopped()
	if above == nil || stop != nil && !tally.Same(stop.Cause, above.Cause) {
		return stop
	}
	return t.Owner.stopped()
}

// endedScope returns the inner scope of a task that ends without one, cancelled with stop or, if
// that is nil, not cancelled: its context goes on to say so. All tasks that were cancelled
// with stop share one.
func (stop *StopError) endedScope() *Scope {
	if stop == nil || stop == endedStop {
		return endedScope
	}
	if stop.ended.Load() == nil {
		s := &Scope{Task: endedScope.Task, Home: process, from: &nowhere, Ended: true}
		s.Why.Store(stop)
		stop.ended.CompareAndSwap(nil, s)
	}
	return stop.ended.Load()
}

// isShared reports whether s stands for the inner scopes of tasks that ended without one.
func (s *Scope) isShared() bool { return s.Task == endedScope.Task }

// StopOf returns why ctx is done, nil while it is not.
func StopOf(ctx context.Context) *StopError {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return &StopError{Err: err, Cause: context.Cause(ctx)}
}
