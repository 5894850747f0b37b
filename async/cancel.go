package async

import (
	"context"
)

// A struck is a task to be cancelled because its owner was, with sg.
type struck struct {
	t  *task
	sg *stopError
}

// cancel cancels s with sg and pushes to whoever asked to be told: waits,
// abort hooks and standard contexts here and below. It reports whether it was
// the first. On an ended scope it does nothing.
//
// A list and not recursion keeps the stack small: who decides a race is often
// a goroutine that is about to end, and growing its stack costs more than the
// rest of a cancellation.
func (s *scope) cancel(sg *stopError) bool {
	first, below := s.strike(sg, nil)
	for n := len(below) - 1; n >= 0; n = len(below) - 1 {
		c := below[n]
		below = below[:n]
		if h := c.t.inner.Load(); h != nil {
			_, below = h.strike(c.t.inherited(c.sg), below)
		} else {
			c.t.skipIfQueued()
		}
	}
	return first
}

// strike cancels s alone and adds to below who is to be cancelled for it.
func (s *scope) strike(sg *stopError, below []struck) (bool, []struck) {
	sg, first := s.lockFor(sg)
	if sg != nil {
		below = s.strikeLocked(sg, below)
	}
	return first, below
}

// strikeLocked is strike from where s.mu is held, which it unlocks. Until then
// no other cancellation can come between: the signal is stored before the
// children are looked at, see makeScope.
func (s *scope) strikeLocked(sg *stopError, below []struck) []struck {
	s.sig.Store(sg)
	s.notifyLocked()
	hook := s.abortHookLocked()
	if below == nil && s.children != nil {
		below = make([]struck, 0, 4)
	}
	for p := s.promises; p != nil; p = p.next {
		if p.inner.Load() != nil {
			below = append(below, struck{p, sg})
		}
	}
	for c := s.children; c != nil; c = c.next { // the last one first, to be taken off last
		if (c.inner.Load() != nil || c.isFoundQueued()) && (c.more == nil || !c.more.shielded) {
			below = append(below, struck{c, sg})
		}
	}
	s.armLocked(sg)
	s.mu.Unlock()

	hook.start()
	if s.t.kind == kindHook {
		s.t.timeIsUp()
	}
	s.t.skipIfQueued()
	return below
}

// notifyLocked tells all who wait under the context of s that it is done.
func (s *scope) notifyLocked() {
	if w := s.parker.Load(); w != nil {
		w.notify(gotStop)
	}
	for w := s.listeners; w != nil; w = w.lnext {
		w.notify(gotStop)
	}
}

// lockFor locks s.mu and returns the signal that s is cancelled with, nil and
// without the lock if s cannot be any more, and whether sg is the first that s
// is cancelled with. If s has a standard context that one has been cancelled by
// then, by us or by its parent, and knows the cause that counts. It wakes who
// waits for it, so s may have ended before we have the lock again, although we
// were the first.
func (s *scope) lockFor(sg *stopError) (counts *stopError, first bool) {
	for {
		s.mu.Lock()
		if s.sig.Load() != nil || s.ended {
			s.mu.Unlock()
			return nil, first
		}
		std := s.std.Load()
		if std == nil {
			return sg, true
		}
		if err := std.Err(); err != nil {
			if cause := context.Cause(std); err != sg.err || !same(cause, sg.cause) {
				sg = &stopError{err, cause}
			}
			return sg, first
		}
		s.mu.Unlock()
		std.cancel(sg.cause) // takes locks of package context and of the parents: not under ours
		first = same(context.Cause(std), sg.cause)
	}
}

// inherited returns what sg of its owner means to t.
func (t *task) inherited(sg *stopError) *stopError {
	switch ctx := t.foreign(); {
	case ctx == nil:
		return sg
	case isDone(ctx): // it knows better
		return &stopError{ctx.Err(), context.Cause(ctx)}
	default:
		return canceled(sg.cause)
	}
}
