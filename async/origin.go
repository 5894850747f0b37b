package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says where a task's context comes from: what it is a child of.
//
// A task belongs to the scope that it was started in, which joins it. Its
// context is a child of the ctx that it was started with, and of nothing else.
// Most tasks are started with the own ctx of their scope, or with one that
// only adds values: they are cancelled with the scope. Another ctx, which was
// derived by WithTimeout, WithCancel or WithoutCancel, decides alone.

// origin returns where t's context comes from.
func (t *task) origin() *origin {
	switch m := t.more; {
	case m != nil && m.differs:
		return &m.origin
	case t.owner != nil:
		return t.owner.from
	default:
		return &nowhere
	}
}

// setOrigin is called when t is made, after its owner and its options are set.
// ctx is what it was started with, nil if that is the owner's own ctx.
func (t *task) setOrigin(ctx context.Context) {
	m := t.more
	if m.differs = ctx != nil || m.shielded || m.timeout != 0; !m.differs {
		return
	}
	o := &m.origin
	if t.owner != nil {
		*o = *t.owner.from
	}
	if ctx != nil {
		o.values = ctx
		m.derived = !m.shielded && !t.owner.endsWith(ctx)
	}
	// o.task is t if something else than our walk may cancel t: a shielded stretch
	// by Shutdown and its time limit, a derived ctx by itself, and any task by a
	// time limit of its own.
	switch {
	case m.shielded:
		o.task, o.deadline = t, time.Time{}
	case m.derived:
		o.task = t
		if ctx.Done() == nil && m.timeout == 0 {
			o.task = nil // never cancelled
		}
		o.deadline, _ = ctx.Deadline()
	case m.timeout != 0:
		o.task = t
	}
}

// endsWith reports whether ctx, with which something is started in s, is done
// exactly when s is: it is derived from the ctx of s by adding values only.
func (s *scope) endsWith(ctx context.Context) bool {
	if s == nil || s == &process.s {
		return false
	}
	done := ctx.Done()
	return done != nil && done == s.t.Done()
}

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
		if above := t.noted(); above != nil && above.err == std.Err() && tally.Same(above.cause, context.Cause(std.Context)) {
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

// stopOf returns why ctx is done, nil while it is not.
func stopOf(ctx context.Context) *stopError {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return &stopError{err: err, cause: context.Cause(ctx)}
}

// above returns what a standard context of t is made a child of. If package
// context may cancel something around t without asking us, that is the nearest
// such thing, so that it propagates at once. All other cancellations are passed
// on by us: measured, contexts for all levels make a race whose losers ask for
// Done half as slow again.
func (t *task) above() context.Context {
	if ctx := t.derived(); ctx != nil {
		return ctx
	}
	if t.owner != nil && t.cancelledWithOwner() {
		if nearest := t.owner.from.task; nearest != nil {
			return nearest.inner.Load().context().Context
		}
	}
	return context.Background()
}
