package tree

import "context"

// This file is about tasks that are faster than their cancellation. A cancellation comes to one task after
// another. So a task may hear from a sibling why both are stopped, and end with that, before its
// own context is done. Whoever judges how it has ended asks StoppedByNow, which has the
// cancellation come first.

// StoppedByNow returns why t's context is done, as Stopped does. If something around t is
// cancelled, and that is still on its way to t, it is passed on here. So no lock may be held.
func StoppedByNow(t *Task) *StopError {
	if stop := t.Stopped(); stop != nil {
		return stop
	}
	if !mayOvertake(t) && !mayOvertakeContext(t) {
		return t.Stopped() // a cancellation that was on its way may have come meanwhile
	}
	return catchUp(t)
}

// mayOvertake reports whether anything around t was told by us to stop: t may have to be, too. It
// looks only while a cancellation is on its way, so that a failure deep in a tree does not look at
// all that is around it once at each level.
func mayOvertake(t *Task) bool {
	if t.Owner == nil || t.Owner.Home.walks.Load() == 0 {
		return false
	}
	if isShutDown(t) {
		return true
	}
	for ; t.Owner != nil; t = t.Owner.Task {
		if wasDismissed(t) || t.Owner.stopped() != nil {
			return true
		}
	}
	return false
}

// mayOvertakeContext reports whether package context has cancelled anything around t, and may not
// have come to t yet: it tells those that are derived from one context one after another, and
// nobody counts that. It looks at the few tasks around t that package context may cancel.
func mayOvertakeContext(t *Task) bool {
	for n := t.origin().task; n != nil; n = n.Owner.from.task {
		if ctx := n.derived(); ctx != nil && ctx.Err() != nil || n != t && n.Inner.Load().stopped() != nil {
			return true
		}
		if n.Owner == nil {
			break
		}
	}
	return false
}

// catchUp cancels t, and what is between it and that which was cancelled, from the outside in.
// It returns why t is stopped, nil if no cancellation is on its way: t is shielded, say.
func catchUp(t *Task) *StopError {
	stop := t.Stopped()
	if stop != nil || t.Owner == nil {
		return stop
	}
	above := catchUp(t.Owner.Task)
	switch ctx := t.derived(); {
	case ctx != nil:
		catchUpContext(t, ctx, above)
	case above != nil && t.cancelledWithOwner():
		if h := t.Inner.Load(); h != nil {
			h.Cancel(above)
		}
	}
	if stop = t.Stopped(); stop != nil {
		return stop
	}
	switch {
	case wasDismissed(t):
		t.dismiss()
	case isShutDown(t):
		t.Scope().Cancel(Canceled(ErrShutdown))
	}
	return t.Stopped()
}

// catchUpContext waits until those derived from ctx have been told if ctx, with which t was started,
// is done. It may be derived from the context of the owner of t, which is stopped with above.
func catchUpContext(t *Task, ctx context.Context, above *StopError) {
	if above != nil {
		t.Owner.Cancel(above)
		if std := t.Owner.std.Load(); std != nil {
			_ = context.Cause(std)
		}
	}
	if ctx.Err() != nil {
		_ = context.Cause(ctx)
	}
}

// wasDismissed reports whether t is a daemon or a group that its owner dismisses.
func wasDismissed(t *Task) bool { return t.IsDismissible() && isDismissed(t) }

// isShutDown reports whether Shutdown cancels t just now, or has.
func isShutDown(t *Task) bool {
	cancels := t.Owner.Home.cancelling.Load()
	return cancels != nil && (*cancels)(t)
}
