package async

import (
	"context"
	"time"
)

// cancel cancels s with sg and pushes to whoever asked to be told: waits,
// abort hooks and standard contexts here and below. It reports whether it was
// the first. On an ended scope it does nothing.
func (s *scope) cancel(sg *signal) bool {
	open, first := s.lockFor(sg)
	if !open {
		return first
	}
	// From here to the unlock no other cancellation can come between: the
	// signal is stored before the children are looked at, see grow.
	if std := s.std.Load(); std != nil {
		sg = &signal{std.Err(), context.Cause(std)}
	}
	s.sig.Store(sg)
	s.notifyLocked()
	hook := s.abortHookLocked()
	children := s.childrenLocked(func(t *task) bool { return t.half.Load() != nil && (t.more == nil || !t.more.shielded) })
	for p := s.promises; p != nil; p = p.next {
		if p.half.Load() != nil {
			children = append(children, p)
		}
	}
	s.armLocked()
	s.mu.Unlock()

	hook.start()
	if s.t.kind == kindHook {
		s.t.overdue()
	}
	if m := s.t.more; m != nil && s.t.state.Load() == stateQueued && (m.slot.withdraw() || m.place.claim()) {
		s.t.skip()
	}
	for _, c := range children {
		c.half.Load().cancel(c.inherited(sg))
	}
	return first
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

// lockFor locks s.mu and returns open if s can still be cancelled with sg, and
// whether sg is the first that s is cancelled with. If s has a standard context
// that one has been cancelled by then, by us or by its parent, and knows the
// cause that counts. It wakes who waits for it, so s may have ended before we
// have the lock again, although we were the first.
func (s *scope) lockFor(sg *signal) (open, first bool) {
	for {
		s.mu.Lock()
		if s.sig.Load() != nil || s.ended {
			s.mu.Unlock()
			return false, first
		}
		std := s.std.Load()
		if std == nil {
			return true, true
		}
		if std.Err() != nil {
			return true, first
		}
		s.mu.Unlock()
		std.cancel(sg.cause) // takes locks of package context and of the parents: not under ours
		first = same(context.Cause(std), sg.cause)
	}
}

// inherited returns what sg of its owner means to t.
func (t *task) inherited(sg *signal) *signal {
	switch ctx := t.foreign(); {
	case ctx == nil:
		return sg
	case isDone(ctx): // it knows better
		return &signal{ctx.Err(), context.Cause(ctx)}
	default:
		return canceled(sg.cause)
	}
}

// armLocked starts the timers that run from the cancellation of s.
func (s *scope) armLocked() {
	if s.opts == nil || s.t.kind != kindBody {
		return
	}
	if f := s.opts.onStall; f != nil {
		s.timers = append(s.timers, time.AfterFunc(s.opts.stall, func() { s.stalled(f) }))
	}
	if s.opts.detaches {
		s.timers = append(s.timers, time.AfterFunc(s.opts.detach, s.giveUp))
	}
}

// giveUp has join return although children are left.
func (s *scope) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = true
	if s.joiner != nil {
		s.joiner.notify(gotSettled) // not in turn: this wait is cut short
	}
}
