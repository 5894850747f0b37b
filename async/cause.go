package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says whether the context of a task or scope is done, and why. It only looks.

// derived returns the ctx that t was started with if that decides alone when
// t's context is cancelled; nil if that is cancelled with the owner's, or if t
// is shielded.
func (t *task) derived() context.Context {
	if m := t.more; m != nil && m.derived {
		return m.origin.values
	}
	return nil
}

// cancelledWithOwner reports whether a cancellation of t's owner is one of t.
func (t *task) cancelledWithOwner() bool {
	return t.more == nil || !t.more.derived && !t.more.shielded
}

// stopped returns why t's context is done, nil while it is not. It only looks.
//
// If the inner scope was made while we asked the owner, that scope answers: a
// cancellation of the owner may not have come to it yet, and then its answer,
// and every later one until then, is no.
func (t *task) stopped() *stopError {
	s := t.inner.Load()
	if s == nil {
		sg := t.stoppedFromAbove()
		if sg == nil {
			return nil
		}
		if s = t.inner.Load(); s == nil {
			return sg
		}
	}
	return s.stopped()
}

// mayBeStopped reports false if t is certainly not stopped: the short way for small tasks,
// whose stacks grow by the frames of stopped.
func mayBeStopped(t *task) bool {
	o := t.owner
	return t.more != nil || o.from.task != nil || o.sig.Load() != nil || o.std.Load() != nil || o.young.Load()
}

// stoppedFromAbove looks for a cancellation in what t's context is a child of.
func (t *task) stoppedFromAbove() *stopError {
	if ctx := t.derived(); ctx != nil {
		return stopOf(ctx)
	}
	if t.owner == nil || !t.cancelledWithOwner() {
		return nil
	}
	return t.owner.stopped()
}

// stopped returns why the context of s is done, nil while it is not. What it
// has said once it goes on to say, though nothing may have followed from it yet:
// see scope.sig.
func (s *scope) stopped() *stopError {
	sg := s.sig.Load()
	if sg == nil && (s.young.Load() || s.isStopped()) {
		if sg = s.stoppedAround(); sg != nil {
			s.sig.CompareAndSwap(nil, sg)
		}
		sg = s.sig.Load() // also what the maker of a young scope has noted meanwhile
	}
	return sg
}

// isStopped reports whether anything says that the context of s is done, where
// s itself has not noted it. There are two places to look: the standard context
// of s, and the nearest task that can be cancelled by something else than our
// own walk. It is one flat function because every start and every wait asks:
// measured, three calls more made the stacks of small tasks grow, which cost
// more than the rest of a start.
func (s *scope) isStopped() bool {
	if std := s.std.Load(); std != nil {
		return std.Err() != nil // it is a child of the nearest such task: it knows
	}
	t := s.t
	if t.owner != nil && t.cancelledWithOwner() {
		t = t.owner.from.task
		if t == nil {
			return false
		}
		h := t.inner.Load() // it has a scope, which we are in
		if h.sig.Load() != nil {
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
func (s *scope) stoppedAround() *stopError {
	t := s.t
	if s.young.Load() {
		if sg := t.stoppedFromAbove(); sg != nil {
			return sg
		}
	}
	var sg *stopError
	if std := s.std.Load(); std != nil {
		above := t.noted()
		if above != nil && above.err == std.Err() && tally.Same(above.cause, context.Cause(std.Context)) {
			return above // most often: there is no need for another
		}
		sg = stopOf(std.Context)
	}
	if t.owner == nil || !t.cancelledWithOwner() {
		if ctx := t.derived(); ctx != nil && sg == nil {
			return stopOf(ctx)
		}
		return sg
	}
	nearest := t.owner.from.task
	if nearest == nil {
		return sg
	}
	above := nearest.inner.Load().stopped()
	if above == nil || sg != nil && !tally.Same(sg.cause, above.cause) {
		return sg
	}
	return t.owner.stopped()
}

// noted returns what the owner of t has noted so far, if a cancellation of the
// owner is one of t.
func (t *task) noted() *stopError {
	if t.owner == nil || !t.cancelledWithOwner() {
		return nil
	}
	return t.owner.sig.Load()
}

// endedScope returns the inner scope of a task that ends without one, cancelled with sg or, if
// that is nil, not cancelled: its context goes on to say so. All tasks that were cancelled
// with sg share one.
func (sg *stopError) endedScope() *scope {
	if sg == nil || sg == endedSignal {
		return endedScope
	}
	if sg.ended.Load() == nil {
		s := &scope{t: endedScope.t, home: process, from: &nowhere, ended: true}
		s.sig.Store(sg)
		sg.ended.CompareAndSwap(nil, s)
	}
	return sg.ended.Load()
}

// isShared reports whether s stands for the inner scopes of tasks that ended without one.
func (s *scope) isShared() bool { return s.t == endedScope.t }

// stopOf returns why ctx is done, nil while it is not.
func stopOf(ctx context.Context) *stopError {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return &stopError{err: err, cause: context.Cause(ctx)}
}
